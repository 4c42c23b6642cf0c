// Logs of positions: each is a queue of which nothing is popped, and which may have holes.
//
// The number of an entry is how many positions with entries come before its own, of all that anybody
// was told of. An append counts when the end of the log passes its position: that is after it was
// begun, for a position is given to nobody before, and before it is answered. A reading counts when
// it looks for the end for the last time: what is below the end then is there, or never will be.
package main

import (
	"encoding/json"
	"math"
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// Where a value is, or was read.
type placed struct {
	position uint64
	value    uint64
}

// UnmarshalJSON reads a pair of numbers.
func (p *placed) UnmarshalJSON(text []byte) error {
	var pair [2]uint64
	err := json.Unmarshal(text, &pair)
	p.position, p.value = pair[0], pair[1]
	return err
}

// What anybody was told of a log.
type positions struct {
	// Those with entries, ascending.
	all []uint64
	// Of each value the one that it was first heard to be at.
	of map[uint64]uint64
}

func (p *positions) hear(seen placed) {
	p.all = append(p.all, seen.position)
	if _, is := p.of[seen.value]; !is {
		p.of[seen.value] = seen.position
	}
}

// number is how many entries are before a position.
func (p *positions) number(position uint64) int {
	return sort.Search(len(p.all), func(n int) bool { return p.all[n] >= position })
}

// gatherPositions makes a history of each log.
func gatherPositions(events []event) map[string][]porcupine.Operation {
	known := map[string]*positions{}
	eachPlaced(events, func(_ event, end *event, s step) {
		if known[s.Key] == nil {
			known[s.Key] = &positions{of: map[uint64]uint64{}}
		}
		if end == nil || end.Kind != "ok" {
			return
		}
		if s.Do == "placed" && s.At != nil {
			known[s.Key].hear(placed{*s.At, s.Value})
		}
		for _, one := range seenBy(s) {
			known[s.Key].hear(one)
		}
	})
	for _, p := range known {
		slices.Sort(p.all)
		p.all = slices.Compact(p.all)
	}
	histories := map[string][]porcupine.Operation{}
	eachPlaced(events, func(begin event, end *event, s step) {
		became, back := unknown, int64(math.MaxInt64)
		if end != nil && end.Kind != "info" {
			became, back = done, end.Order
		}
		if end != nil && end.Kind == "fail" {
			return
		}
		if a, is := accessOf(known[s.Key], s, became); is {
			histories[s.Key] = append(histories[s.Key], porcupine.Operation{
				ClientId: begin.Process, Call: begin.Order, Return: back, Output: a,
			})
		}
	})
	return histories
}

// eachPlaced goes through what was done with logs of positions; what has no end is told last.
func eachPlaced(events []event, do func(begin event, end *event, s step)) {
	open := map[int]event{}
	tell := func(begin event, end *event, steps []step) {
		for _, s := range steps {
			if s.Do == "placed" || s.Do == "positions" {
				do(begin, end, s)
			}
		}
	}
	for n := range events {
		e := &events[n]
		if e.Workload != "zlogs" || e.Kind == "note" {
			continue
		}
		if e.Kind == "invoke" {
			open[e.Process] = *e
			continue
		}
		if begin, is := open[e.Process]; is {
			tell(begin, e, e.Steps)
			delete(open, e.Process)
		}
	}
	for _, begin := range open {
		tell(begin, nil, begin.Steps)
	}
}

// seenBy is what a reading saw.
func seenBy(s step) (seen []placed) {
	if s.Do == "positions" && json.Unmarshal(s.Seen, &seen) != nil {
		return nil
	}
	return seen
}

// accessOf says what was done to a log; nothing where that is not known to have happened.
func accessOf(p *positions, s step, became fate) (access, bool) {
	if s.Do == "placed" {
		at, is := p.of[s.Value]
		if became == done && s.At != nil {
			at, is = *s.At, true
		}
		return access{kind: "append", from: p.number(at), values: []uint64{s.Value}}, is
	}
	if became != done {
		return access{}, false
	}
	a := access{kind: "read", from: p.number(s.From), isEnd: true}
	for n, one := range seenBy(s) {
		if p.number(one.position) != a.from+n {
			// Something is left out, or out of order, which no log ever shows.
			return access{kind: "read", from: a.from, values: []uint64{0}}, true
		}
		a.values = append(a.values, one.value)
	}
	return a, true
}
