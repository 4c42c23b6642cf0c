// Shared logs: each partition is a queue that keeps what is popped.
//
// Places in a partition are addresses; the number of an entry in it is how many places there are
// before its own, of all that anybody was told of. Who trims has read what goes, so that is all.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// Partition, segment, bytes, and which of those that were appended together.
type place [4]uint64

// What was done to a shared log: one of these.
type did struct {
	Batch   *batch   `json:"batch"`
	Stretch *stretch `json:"stretch"`
	At      *one     `json:"at"`
	Taken   *taken   `json:"taken"`
}

// UnmarshalJSON reads it; what was sealed is a word alone.
func (d *did) UnmarshalJSON(text []byte) error {
	type plain did
	if len(text) > 0 && text[0] == '"' {
		return nil
	}
	return json.Unmarshal(text, (*plain)(d))
}

type batch struct {
	Values []uint64 `json:"values"`
	At     *entry   `json:"at"`
}

type stretch struct {
	From  []place `json:"from"`
	To    []place `json:"to"`
	IsEnd bool    `json:"is_end"`
	Seen  []entry `json:"seen"`
}

type one struct {
	At   place    `json:"at"`
	Seen *[]entry `json:"seen"`
}

type taken struct {
	How  json.RawMessage `json:"how"`
	Max  int             `json:"max"`
	Seen *[]entry        `json:"seen"`
}

type entry struct {
	value uint64
	at    place
}

// UnmarshalJSON reads value and place, and passes by stamp and number.
func (e *entry) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || len(parts) < 2 {
		return fmt.Errorf("%s is no entry: %w", text, err)
	}
	if err := json.Unmarshal(parts[0], &e.value); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &e.at)
}

// What is done to a partition: entries are appended; read from a number on, to the end or not; or
// popped.
type access struct {
	kind   string
	from   int
	values []uint64
	isEnd  bool
	max    int
	fate   fate
}

// What a partition has, and how many of it were popped.
type queue struct {
	values []uint64
	popped int
}

// A partition is appended to at its end, read anywhere, and popped from its begin. A pop of which
// nobody knows what became takes some, or nothing.
var queues = nondeterministic.ToModel()

var nondeterministic = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{queue{}} },
	Step: func(state, _, out interface{}) []interface{} {
		held, a := state.(queue), out.(access)
		size := len(held.values)
		rest := func(from int) []uint64 { return held.values[min(from, size):] }
		switch {
		case a.kind == "append" && a.from == size:
			all := append(slices.Clone(held.values), a.values...)
			return []interface{}{queue{all, held.popped}}
		case a.kind == "append":
			return nil
		case a.kind == "pop" && a.fate == unknown:
			states := []interface{}{}
			for n := held.popped; n <= min(held.popped+a.max, size); n++ {
				states = append(states, queue{held.values, n})
			}
			return states
		case a.kind == "pop" && len(a.values) == 0:
			if held.popped != size {
				return nil
			}
		case a.kind == "pop":
			left := rest(held.popped)
			if len(left) < len(a.values) || !slices.Equal(left[:len(a.values)], a.values) {
				return nil
			}
			return []interface{}{queue{held.values, held.popped + len(a.values)}}
		default:
			left := rest(a.from)
			isThere := len(left) >= len(a.values) && slices.Equal(left[:len(a.values)], a.values)
			if !isThere || a.isEnd && a.from+len(a.values) != size {
				return nil
			}
		}
		return []interface{}{held}
	},
	Equal: func(one, other interface{}) bool {
		a, b := one.(queue), other.(queue)
		return a.popped == b.popped && slices.Equal(a.values, b.values)
	},
}

// All that anybody was told of the places of a log's entries.
type places struct {
	// Of each partition, in order.
	all map[uint64][]place
	of  map[uint64]place
}

func (p *places) hear(value uint64, at place) {
	if _, is := p.of[value]; !is {
		p.of[value] = at
		p.all[at[0]] = append(p.all[at[0]], at)
	}
}

// number is how many entries are before a place.
func (p *places) number(at place) int {
	all := p.all[at[0]]
	return sort.Search(len(all), func(n int) bool {
		return slices.Compare(all[n][:], at[:]) >= 0
	})
}

// gatherLogs makes a history of each partition of each log.
func gatherLogs(events []event) map[string][]porcupine.Operation {
	known := map[string]*places{}
	each := func(do func(begin, end *event, s step)) {
		open := map[int]*event{}
		for n := range events {
			e := &events[n]
			if e.Workload != "shared-logs" || e.Kind == "note" {
				continue
			}
			if e.Kind == "invoke" {
				open[e.Process] = e
				continue
			}
			for _, s := range e.Steps {
				if begin := open[e.Process]; begin != nil && s.Do == "shared-log" {
					do(begin, e, s)
				}
			}
			delete(open, e.Process)
		}
	}
	each(func(_, end *event, s step) {
		if known[s.Log] == nil {
			known[s.Log] = &places{map[uint64][]place{}, map[uint64]place{}}
		}
		tell(known[s.Log], s.Did)
	})
	for _, p := range known {
		for _, all := range p.all {
			slices.SortFunc(all, func(a, b place) int { return slices.Compare(a[:], b[:]) })
		}
	}
	histories := map[string][]porcupine.Operation{}
	each(func(begin, end *event, s step) {
		became, back := done, end.Order
		switch end.Kind {
		case "fail":
			return
		case "info":
			became, back = unknown, int64(math.MaxInt64)
		}
		for partition, a := range accesses(known[s.Log], s.Did, became) {
			name := fmt.Sprintf("%s/%d", s.Log, partition)
			histories[name] = append(histories[name], porcupine.Operation{
				ClientId: begin.Process, Call: begin.Order, Return: back, Output: a,
			})
		}
	})
	return histories
}

// tell says where entries are.
func tell(p *places, d did) {
	hear := func(seen []entry) {
		for _, e := range seen {
			p.hear(e.value, e.at)
		}
	}
	switch {
	case d.Batch != nil && d.Batch.At != nil:
		at := d.Batch.At.at
		for n, value := range d.Batch.Values {
			p.hear(value, place{at[0], at[1], at[2], at[3] + uint64(n)})
		}
	case d.Stretch != nil:
		hear(d.Stretch.Seen)
	case d.At != nil && d.At.Seen != nil:
		hear(*d.At.Seen)
	case d.Taken != nil && d.Taken.Seen != nil:
		hear(*d.Taken.Seen)
	}
}

func values(seen []entry) (all []uint64) {
	for _, e := range seen {
		all = append(all, e.value)
	}
	return all
}

// accesses says what was done to each partition; nothing where that is not known to have happened.
func accesses(p *places, d did, became fate) map[uint64]access {
	all := map[uint64]access{}
	switch {
	case d.Batch != nil:
		if at, is := p.of[d.Batch.Values[0]]; is {
			all[at[0]] = access{kind: "append", from: p.number(at), values: d.Batch.Values}
		}
	case d.Stretch != nil && became == done && d.Stretch.From != nil:
		for n, from := range d.Stretch.From {
			isElsewhere := func(e entry) bool { return e.at[0] != from[0] }
			seen := slices.DeleteFunc(slices.Clone(d.Stretch.Seen), isElsewhere)
			if p.number(from)+len(seen) == p.number(d.Stretch.To[n]) {
				all[from[0]] = access{
					kind: "read", from: p.number(from), values: values(seen), isEnd: d.Stretch.IsEnd,
				}
			} else {
				// Something is left out, which no partition ever shows.
				all[from[0]] = access{kind: "read", from: p.number(from), values: []uint64{0}}
			}
		}
	case d.At != nil && became == done:
		at := d.At.At
		all[at[0]] = access{
			kind: "read", from: p.number(at), values: values(*d.At.Seen), isEnd: len(*d.At.Seen) == 0,
		}
	case d.Taken != nil && string(d.Taken.How) == `"pop"`:
		all = pops(p, d.Taken, became)
	}
	return all
}

// pops says what was popped of which partition: of all it was asked for, if there was nothing, and
// if nobody knows.
func pops(p *places, t *taken, became fate) map[uint64]access {
	all := map[uint64]access{}
	if became == done && len(*t.Seen) > 0 {
		all[(*t.Seen)[0].at[0]] = access{kind: "pop", values: values(*t.Seen), fate: done}
		return all
	}
	for partition := range p.all {
		all[partition] = access{kind: "pop", max: t.Max, fate: became}
	}
	return all
}
