// The second check of a trial's history, by Porcupine: registers, lists, locks with what they guard,
// blobs of long payloads, groups, partitions of shared logs, and logs of positions are linearizable,
// each one by one.
//
// It reads the lines that tyr-trial writes. Every key is a history of its own. A transaction on
// several lists counts at each of them as one operation: what it read there and then appended. What
// ended unknown may take effect at any time after it began. Exit code 0: nothing found, 1: found.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long one key may take: those of a trial take milliseconds.
const patience = 20 * time.Second

type step struct {
	Do    string          `json:"do"`
	Key   string          `json:"key"`
	Value uint64          `json:"value"`
	At    *uint64         `json:"at"`
	From  uint64          `json:"from"`
	To    uint64          `json:"to"`
	Seen  json.RawMessage `json:"seen"`
	Token *uint64         `json:"token"`
	Len   uint64          `json:"len"`
	How   string          `json:"how"`
	Entry uint64          `json:"entry"`
	Count *uint64         `json:"count"`
	Sum   *uint64         `json:"sum"`
	Log   string          `json:"log"`
	Did   did             `json:"did"`
}

type event struct {
	Order     int64  `json:"order"`
	Process   int    `json:"process"`
	Kind      string `json:"kind"`
	Workload  string `json:"workload"`
	Operation string `json:"operation"`
	Moment    string `json:"moment"`
	Steps     []step `json:"steps"`
	Error     string `json:"error"`
}

// What is done to one key; what was answered is known when the operation is.
type input struct {
	isWrite bool
	isSwap  bool
	from    uint64
	value   uint64
	isRead  bool
	appends []uint64
}

type output struct {
	isKnown bool
	value   uint64
	list    []uint64
	at      []uint64
}

// A register holds the value that was written last, and 0 before.
var register = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, i, o := state.(uint64), in.(input), out.(output)
		switch {
		case i.isWrite:
			return true, i.value
		case i.isSwap && !o.isKnown && held != i.from:
			return true, held
		case i.isSwap:
			return held == i.from, i.value
		default:
			return held == o.value, held
		}
	},
}

type list struct {
	len  int
	hash uint64
}

func (l list) with(value uint64) list {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d,%d", l.hash, value)
	return list{l.len + 1, h.Sum64()}
}

// A list holds what was appended; who reads sees all of it.
var lists = porcupine.Model{
	Init: func() interface{} { return list{} },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, i, o := state.(list), in.(input), out.(output)
		if i.isRead && o.isKnown {
			seen := list{}
			for _, value := range o.list {
				seen = seen.with(value)
			}
			if seen != held {
				return false, held
			}
		}
		for n, value := range i.appends {
			if o.isKnown && n < len(o.at) && o.at[n] != uint64(held.len) {
				return false, held
			}
			held = held.with(value)
		}
		return true, held
	},
}

// What became of a step.
type fate int

const (
	unknown fate = iota
	done
	refused
)

// A step of a lock, of a blob of long payloads, or of a group, with what became of it.
type deed struct {
	step step
	fate fate
	// Of a refusal, the kind of its error.
	kind string
}

type lock struct {
	token   uint64
	guarded list
}

func (l list) withPair(token, value uint64) list { return l.with(token).with(value) }

// A lock has a token that grows by one with each who gets it; what is done under a fence is done if
// the token is its own, and refused if it is not.
var locks = porcupine.Model{
	Init: func() interface{} { return lock{} },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, d := state.(lock), out.(deed)
		s := d.step
		switch s.Do {
		case "lock":
			if d.fate == done && *s.Token != held.token+1 {
				return false, held
			}
			return true, lock{held.token + 1, held.guarded}
		case "fenced", "unlock":
			isOwn := *s.Token == held.token
			if d.fate == refused {
				return !isOwn, held
			}
			if !isOwn || s.Do == "unlock" {
				return isOwn || d.fate == unknown, held
			}
			if d.fate == done && 2**s.At != uint64(held.guarded.len) {
				return false, held
			}
			return true, lock{held.token, held.guarded.withPair(*s.Token, s.Value)}
		default:
			var pairs [][2]uint64
			if json.Unmarshal(s.Seen, &pairs) != nil {
				return false, held
			}
			seen := list{}
			for _, pair := range pairs {
				seen = seen.withPair(pair[0], pair[1])
			}
			return seen == held.guarded, held
		}
	},
}

// Words of one payload: its value, the first of them, how many.
type run [3]uint64

// A blob as text, so that two can be compared.
func text(runs []run) string { return fmt.Sprint(runs) }

func length(runs []run) (sum uint64) {
	for _, r := range runs {
		sum += r[2]
	}
	return sum
}

// with has one more run behind the others; runs that follow each other are one.
func with(runs []run, r run) []run {
	if r[2] == 0 {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1][0] == r[0] {
		last := runs[n-1]
		if r[0] == 0 || last[1]+last[2] == r[1] {
			return append(append([]run{}, runs[:n-1]...), run{last[0], last[1], last[2] + r[2]})
		}
	}
	return append(append([]run{}, runs...), r)
}

// part is what lies between two places.
func part(runs []run, from, to uint64) (all []run) {
	begin := uint64(0)
	for _, r := range runs {
		low, high := max(begin, from), min(begin+r[2], to)
		if low < high {
			first := r[1]
			if r[0] != 0 {
				first += low - begin
			}
			all = with(all, run{r[0], first, high - low})
		}
		begin += r[2]
	}
	return all
}

// over is the blob with a payload written at a place; a gap is zeros.
func over(runs []run, at uint64, r run) []run {
	end := length(runs)
	all := part(runs, 0, at)
	if end < at {
		all = with(all, run{0, 0, at - end})
	}
	all = with(all, r)
	for _, r := range part(runs, at+r[2], end) {
		all = with(all, r)
	}
	return all
}

// A blob holds what was put last, with what was written over it and appended since.
var blobs = porcupine.Model{
	Init: func() interface{} { return []run{} },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, d := state.([]run), out.(deed)
		s := d.step
		if s.Do == "runs" {
			var seen []run
			return json.Unmarshal(s.Seen, &seen) == nil && text(seen) == text(held), held
		}
		written, end := run{s.Value, 0, s.Len}, length(held)
		switch s.How {
		case "whole":
			return true, with([]run{}, written)
		case "over":
			return true, over(held, *s.At, written)
		default:
			if s.At != nil && *s.At != end {
				return d.fate == unknown && s.How == "expected", held
			}
			return true, with(held, written)
		}
	},
	Equal: func(one, other interface{}) bool { return text(one.([]run)) == text(other.([]run)) },
}

// A group has entries, each once; its header says how many there are, and their sum.
var groups = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, d := state.(uint64), out.(deed)
		s := d.step
		bit := uint64(1) << s.Entry
		isThere := held&bit != 0
		switch {
		case s.Do == "enter" && d.fate == refused:
			return isThere && d.kind == "AlreadyExists", held
		case s.Do == "leave" && d.fate == refused:
			return !isThere && d.kind == "NotFound", held
		case s.Do == "enter":
			return !isThere || d.fate == unknown, held | bit
		case s.Do == "leave":
			return isThere || d.fate == unknown, held &^ bit
		default:
			count, sum, all := uint64(0), uint64(0), uint64(0)
			for n := uint64(0); n < 64; n++ {
				if held>>n&1 == 1 {
					count, sum = count+1, sum+n
				}
			}
			var seen []uint64
			if json.Unmarshal(s.Seen, &seen) == nil && seen != nil {
				for _, entry := range seen {
					all |= 1 << entry
				}
				if all != held {
					return false, held
				}
			}
			return *s.Count == count && *s.Sum == sum, held
		}
	},
}

var models = map[string]porcupine.Model{
	"registers": register,
	"lists":     lists,
	"locks":     locks,
	"uploads":   blobs,
	"groups":    groups,

	"shared-logs": queues,
	// A queue of which nothing is popped.
	"zlogs": queues,
}

type key struct {
	workload string
	name     string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "which history?")
		os.Exit(2)
	}
	events, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	histories := gather(events)
	keys := make([]key, 0, len(histories))
	for k := range histories {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(a, b int) bool { return keys[a].name < keys[b].name })
	operations, open, wrong := 0, 0, 0
	for _, k := range keys {
		model := models[k.workload]
		operations += len(histories[k])
		switch porcupine.CheckOperationsTimeout(model, histories[k], patience) {
		case porcupine.Illegal:
			wrong++
			fmt.Printf("%s is not linearizable (%d operations)\n", k.name, len(histories[k]))
		case porcupine.Unknown:
			open++
			fmt.Printf("%s: not known after %v (%d operations)\n", k.name, patience, len(histories[k]))
		}
	}
	fmt.Printf("%d keys, %d operations, %d wrong, %d not known\n", len(keys), operations, wrong, open)
	if wrong > 0 {
		os.Exit(1)
	}
}

func read(path string) ([]event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []event
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<28)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, scanner.Err()
}

// conditions are the kinds of errors that tell what was there.
var conditions = []string{"Conflict", "AlreadyExists", "NotFound"}

// refusal is the kind of an error that tells what was there; of others, and of reads, nothing.
func refusal(e event) string {
	kind, _, _ := strings.Cut(e.Error, ":")
	for _, s := range e.Steps {
		switch s.Do {
		case "fenced", "unlock", "enter", "leave":
			if slices.Contains(conditions, kind) {
				return kind
			}
		}
	}
	return ""
}

// gather makes a history of each register, each list, and so on.
func gather(events []event) map[key][]porcupine.Operation {
	histories := map[key][]porcupine.Operation{}
	open := map[int]event{}
	end := func(begin event, e *event) {
		call, back, steps := begin.Order, int64(math.MaxInt64), begin.Steps
		became, kind := unknown, ""
		if e != nil {
			steps = e.Steps
			if e.Kind == "ok" {
				became = done
			} else if kind = refusal(*e); kind != "" {
				became = refused
			}
		}
		if became != unknown {
			back = e.Order
		}
		// Snapshots and reads of many lie elsewhere in time.
		if begin.Moment != "strict" {
			return
		}
		switch begin.Workload {
		case "shared-logs", "zlogs":
			return // They need all that anybody was told.
		case "locks", "uploads", "groups":
			for _, s := range steps {
				if s.Do == "held" || became == unknown && !changes(s) {
					continue
				}
				k := key{begin.Workload, s.Key}
				histories[k] = append(histories[k], porcupine.Operation{
					ClientId: begin.Process, Call: call, Return: back,
					Output: deed{s, became, kind},
				})
			}
			return
		}
		for k, io := range split(begin.Workload, steps, became == done) {
			histories[k] = append(histories[k], porcupine.Operation{
				ClientId: begin.Process, Input: io.in, Call: call, Output: io.out, Return: back,
			})
		}
	}
	for n := range events {
		e := events[n]
		switch e.Kind {
		case "invoke":
			open[e.Process] = e
		case "ok", "info":
			if begin, is := open[e.Process]; is {
				end(begin, &e)
				delete(open, e.Process)
			}
		case "fail":
			if begin, is := open[e.Process]; is && refusal(e) != "" {
				end(begin, &e)
			}
			delete(open, e.Process)
		}
	}
	for _, begin := range open {
		end(begin, nil)
	}
	for name, operations := range gatherLogs(events) {
		histories[key{"shared-logs", name}] = operations
	}
	for name, operations := range gatherPositions(events) {
		histories[key{"zlogs", name}] = operations
	}
	return histories
}

// changes says whether a step of a lock, a blob or a group may have changed something.
func changes(s step) bool {
	switch s.Do {
	case "lock", "fenced", "upload", "enter", "leave":
		return true
	}
	return false
}

type pair struct {
	in  input
	out output
}

// split says what an operation did to each key; nothing for those that changed nothing and are not
// known to have happened.
func split(workload string, steps []step, isDone bool) map[key]pair {
	all := map[key]pair{}
	changes := map[key]bool{}
	for _, s := range steps {
		k := key{workload, s.Key}
		p := all[k]
		p.out.isKnown = isDone
		switch {
		case workload == "registers" && s.Do == "write":
			p.in.isWrite, p.in.value, changes[k] = true, s.Value, true
		case workload == "registers" && s.Do == "swap":
			p.in.isSwap, p.in.from, p.in.value, changes[k] = true, s.From, s.To, true
		case workload == "registers" && s.Do == "read":
			if json.Unmarshal(s.Seen, &p.out.value) != nil {
				continue
			}
		case workload == "lists" && s.Do == "append":
			p.in.appends, changes[k] = append(p.in.appends, s.Value), true
			if s.At != nil {
				p.out.at = append(p.out.at, *s.At)
			}
		case workload == "lists" && s.Do == "list":
			p.in.isRead = true
			if json.Unmarshal(s.Seen, &p.out.list) != nil {
				continue
			}
		default:
			continue
		}
		all[k] = p
	}
	for k := range all {
		if !isDone && !changes[k] {
			delete(all, k)
		}
	}
	return all
}
