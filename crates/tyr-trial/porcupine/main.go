// The second check of a trial's history, by Porcupine: registers, and lists one by one, are
// linearizable.
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
	"sort"
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
}

type event struct {
	Order     int64  `json:"order"`
	Process   int    `json:"process"`
	Kind      string `json:"kind"`
	Workload  string `json:"workload"`
	Operation string `json:"operation"`
	Moment    string `json:"moment"`
	Steps     []step `json:"steps"`
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
	operations, unknown, wrong := 0, 0, 0
	for _, k := range keys {
		model := lists
		if k.workload == "registers" {
			model = register
		}
		operations += len(histories[k])
		switch porcupine.CheckOperationsTimeout(model, histories[k], patience) {
		case porcupine.Illegal:
			wrong++
			fmt.Printf("%s is not linearizable (%d operations)\n", k.name, len(histories[k]))
		case porcupine.Unknown:
			unknown++
			fmt.Printf("%s: not known after %v (%d operations)\n", k.name, patience, len(histories[k]))
		}
	}
	fmt.Printf("%d keys, %d operations, %d wrong, %d not known\n", len(keys), operations, wrong, unknown)
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

// gather makes a history of each register, and of each list.
func gather(events []event) map[key][]porcupine.Operation {
	histories := map[key][]porcupine.Operation{}
	open := map[int]event{}
	end := func(begin event, e *event) {
		call, back, steps := begin.Order, int64(math.MaxInt64), begin.Steps
		isDone := e != nil && e.Kind == "ok"
		if e != nil {
			steps = e.Steps
		}
		if isDone {
			back = e.Order
		}
		// Snapshots and reads of many lie elsewhere in time.
		if begin.Moment != "strict" {
			return
		}
		for k, io := range split(begin.Workload, steps, isDone) {
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
			delete(open, e.Process)
		}
	}
	for _, begin := range open {
		end(begin, nil)
	}
	return histories
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
