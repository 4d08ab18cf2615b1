package builtin

import (
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A lineDFA finds the lines in which an RE2 expression may match, in a few cycles
// for a byte where package regexp needs a hundred. It is the expression's
// automaton, made deterministic as far as the text asks for it.
//
// It may report a line too many, never one too few: to it all bytes from 0x80 on
// are alike, a character beyond ASCII is any number of them, and any CR may be
// the end of its line. Whoever uses it looks at the line again.
//
// It is not safe for concurrent use.
type lineDFA struct {
	prog  *syntax.Prog
	tests []byteTest // by instruction
	asks  before     // what the assertions in prog are about

	class   [256]uint8 // bytes of one class are never told apart
	samples []byte     // one byte of each class
	stride  uint32     // how many classes

	// trans[state+class] is the next state. States are multiples of stride, and
	// the smallest two are not real.
	trans  []uint32
	states []dfaState
	index  map[string]uint32
	start  uint32    // at the beginning of a line
	idle   uint32    // further on, with nothing begun
	stay   [256]bool // bytes that lead from idle to idle
	resets int

	visited, next bitset // scratch of step
	stack         []uint32
	key           []byte
}

// A dfaState is where the automaton may be. What assertions let through from
// there is only known with the next byte.
type dfaState struct {
	// at holds instructions, and, from len(prog.Inst) on, those whose character
	// may go on with the next byte.
	at     bitset
	before before
}

// before is what assertions ask about the text before a position.
type before uint8

const (
	lineStart before = 1 << iota
	wordChar
)

// Multiples of stride that are no states.
const (
	unknownState = 0 // nobody has asked for this transition yet
	matchState   = 1 // the line is found
)

const (
	maxDFAInstructions = 5000
	maxDFAStates       = 4000 // then it begins anew
	maxDFAResets       = 16   // then it is of no use for this text
)

// newLineDFA makes the automaton of a compiled expression; nil if that is too
// big to be of use.
func newLineDFA(prog *syntax.Prog) *lineDFA {
	n := len(prog.Inst)
	if n > maxDFAInstructions {
		return nil
	}
	d := &lineDFA{prog: prog, tests: make([]byteTest, n), visited: newBitset(n), next: newBitset(2 * n)}
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		if inst.Op == syntax.InstEmptyWidth {
			d.asks |= asksAbout(syntax.EmptyOp(inst.Arg))
		}
		d.tests[i] = testOf(inst)
	}
	d.classify()
	d.reset()
	return d
}

func asksAbout(op syntax.EmptyOp) (b before) {
	if op&syntax.EmptyBeginText != 0 {
		b |= lineStart
	}
	if op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
		b |= wordChar
	}
	return b
}

// A byteTest tells which bytes an instruction accepts.
type byteTest struct {
	ascii [2]uint64
	high  bool // some character beyond ASCII
}

func (t *byteTest) accepts(c byte) bool {
	if c >= utf8.RuneSelf {
		return t.high
	}
	return t.ascii[c/64]>>(c%64)&1 != 0
}

func testOf(inst *syntax.Inst) (t byteTest) {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1:
		fold := syntax.Flags(inst.Arg)&syntax.FoldCase != 0
		for _, r := range inst.Rune { // the ends of ranges, or one character
			t.high = t.high || r >= utf8.RuneSelf || fold && unicode.SimpleFold(r) >= utf8.RuneSelf
		}
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		t.high = true
	default:
		return t
	}
	for c := range byte(utf8.RuneSelf) {
		if inst.MatchRune(rune(c)) {
			t.ascii[c/64] |= 1 << (c % 64)
		}
	}
	return t
}

// classify finds the classes: the bytes that no instruction tells apart.
func (d *lineDFA) classify() {
	var word, lf, cr byteTest
	for c := range byte(utf8.RuneSelf) {
		if syntax.IsWordChar(rune(c)) {
			word.ascii[c/64] |= 1 << (c % 64)
		}
	}
	lf.ascii[0], cr.ascii[0] = 1<<'\n', 1<<'\r'
	done := map[byteTest]bool{}
	for _, t := range append([]byteTest{word, lf, cr, {high: true}}, d.tests...) {
		if done[t] {
			continue
		}
		done[t] = true
		type half struct {
			class uint8
			in    bool
		}
		classes := map[half]uint8{}
		for c := range 256 {
			h := half{d.class[c], t.accepts(byte(c))}
			if _, ok := classes[h]; !ok {
				classes[h] = uint8(len(classes))
			}
			d.class[c] = classes[h]
		}
		d.stride = uint32(len(classes))
	}
	d.samples = make([]byte, d.stride)
	for c := range 256 {
		d.samples[d.class[c]] = byte(c)
	}
}

// reset forgets all states but the ones that every search begins with.
func (d *lineDFA) reset() {
	d.states, d.trans = make([]dfaState, 2), make([]uint32, 2*d.stride)
	d.index = map[string]uint32{}
	none := newBitset(2 * len(d.prog.Inst))
	d.start = d.intern(none, lineStart)
	d.idle = d.intern(none, 0)
	for c := range 256 {
		d.stay[c] = d.step(d.idle, d.class[c]) == d.idle
	}
}

// find returns a position in, or at the end of, the first line in which the
// expression may match; -1 if there is none. The search begins at from, which is
// the beginning of a line.
func (d *lineDFA) find(buf []byte, from int) int {
	if from >= len(buf) {
		return -1
	}
	if d.resets > maxDFAResets {
		return from
	}
	match, s := matchState*d.stride, d.start
	for i := from; i < len(buf); i++ {
		if s == d.idle {
			for d.stay[buf[i]] {
				if i++; i == len(buf) {
					break
				}
			}
			if i == len(buf) {
				break
			}
		}
		class := d.class[buf[i]]
		to := d.trans[s+uint32(class)]
		if to <= match {
			if to == unknownState {
				to = d.step(s, class)
			}
			if to == match {
				return i
			}
		}
		s = to
	}
	if buf[len(buf)-1] != '\n' && d.step(s, d.class['\n']) == match {
		return len(buf)
	}
	return -1
}

// step works a transition out.
func (d *lineDFA) step(s uint32, class uint8) uint32 {
	c := d.samples[class]
	state := &d.states[s/d.stride]
	var to uint32
	switch {
	case d.follow(state, c):
		to = matchState * d.stride
	case c == '\n':
		to = d.start
	default:
		resets, context := d.resets, before(0)
		if syntax.IsWordChar(rune(c)) {
			context = wordChar
		}
		to = d.intern(d.next, context)
		if d.resets != resets { // s is no more
			return to
		}
	}
	d.trans[s+uint32(class)] = to
	return to
}

// follow collects in d.next where c leads to, and reports whether there is a
// match before c.
func (d *lineDFA) follow(state *dfaState, c byte) bool {
	n := uint32(len(d.prog.Inst))
	holds := d.assertions(state, c)
	clear(d.visited)
	clear(d.next)
	d.stack = append(d.stack[:0], uint32(d.prog.Start))
	for at := range state.at.all {
		if at < n {
			d.stack = append(d.stack, at)
		} else if c >= utf8.RuneSelf {
			d.next.add(at)
			d.next.add(d.prog.Inst[at-n].Out)
		}
	}
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.visited.add(pc) {
			continue
		}
		switch inst := &d.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				d.stack = append(d.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			if d.tests[pc].accepts(c) {
				d.next.add(inst.Out)
				if c >= utf8.RuneSelf {
					d.next.add(n + pc)
				}
			}
		}
	}
	return false
}

// assertions lists what holds between the state and the byte c.
func (d *lineDFA) assertions(state *dfaState, c byte) syntax.EmptyOp {
	holds := syntax.EmptyNoWordBoundary
	if (state.before&wordChar != 0) != syntax.IsWordChar(rune(c)) {
		holds = syntax.EmptyWordBoundary
	}
	if state.before&lineStart != 0 {
		holds |= syntax.EmptyBeginText
	}
	if c == '\n' || c == '\r' {
		holds |= syntax.EmptyEndText
	}
	return holds
}

// intern returns the state with these properties, as far as the expression
// tells them apart.
func (d *lineDFA) intern(at bitset, context before) uint32 {
	context &= d.asks
	key := append(d.key[:0], byte(context))
	for _, word := range at {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	d.key = key
	if id, ok := d.index[string(key)]; ok {
		return id
	}
	at = slices.Clone(at)
	if len(d.states) >= maxDFAStates {
		d.resets++
		d.reset()
		return d.intern(at, context)
	}
	id := uint32(len(d.states)) * d.stride
	d.states = append(d.states, dfaState{at, context})
	d.trans = append(d.trans, make([]uint32, d.stride)...)
	d.index[string(key)] = id
	return id
}

// A bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

// add puts n into the set and reports whether it is new.
func (b bitset) add(n uint32) bool {
	mask := uint64(1) << (n % 64)
	fresh := b[n/64]&mask == 0
	b[n/64] |= mask
	return fresh
}

// all ranges over the set.
func (b bitset) all(yield func(uint32) bool) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			if !yield(uint32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
