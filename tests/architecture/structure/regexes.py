"""Regular expressions that can take exponential time: two ways to match one text in a loop.

Python's engine tries every way before it gives up. A pattern whose automaton has a state with two different
loops over the same text (exponential degree of ambiguity; Weber and Seidl, "On the degree of ambiguity of
finite automata", 1991) doubles its time with each repetition: `(?:[a-z]+,?)+]` on a list without its bracket.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from re import _constants as sre
from re import _parser

#: A counted repetition of at least so many rounds is taken for a loop; one of fewer is written out.
_LOOP_ROUNDS = 8
#: Characters that stand for all others in sets: ASCII decides every pattern here, one more is any other.
_ALPHABET = [chr(code) for code in range(128)] + ["\u0416"]
_CLASSES = {sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_WORD: r"\w"} | {
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_NOT_WORD: r"\W",
}


@dataclass
class _Automaton:
    """Moves between numbered states: free ones, and those over one character of a set."""

    free: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    over: dict[int, list[tuple[frozenset[str], int]]] = field(default_factory=lambda: defaultdict(list))
    states: int = 0

    def state(self) -> int:
        self.states += 1
        return self.states - 1


def ambiguous_loop(pattern: re.Pattern[str] | re.Pattern[bytes]) -> str | None:
    """Return a character with which a loop of the pattern is matched in two ways, if there is such a loop."""
    automaton = _Automaton()
    _build(automaton, _nodes(pattern), pattern.flags, automaton.state())
    moves = _moves_without_free_ones(automaton)
    for state in moves:
        if (character := _doubled_loop(moves, state)) is not None:
            return character
    return None


def matching_text(pattern: re.Pattern[str] | re.Pattern[bytes], *, rounds: int, branch: int = 0) -> str:
    """Return a text that the pattern matches, its open loops run so many times, without assertions.

    Args:
        pattern: the pattern.
        rounds: how often a loop is run.
        branch: which alternative is taken, or the last one where there are fewer.
    """
    return _text_of(_nodes(pattern), pattern.flags, rounds, branch)


def _nodes(pattern: re.Pattern[str] | re.Pattern[bytes]) -> object:
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    return _parser.parse(text, pattern.flags & ~re.UNICODE)


def _text_of(nodes: object, flags: int, rounds: int, branch: int) -> str:
    return "".join(_text_of_one(operation, value, flags, rounds, branch) for operation, value in nodes)


def _text_of_one(operation: object, value: object, flags: int, rounds: int, branch: int) -> str:
    match operation, value:
        case ((sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT), (least, most, body)):
            times = max(least, rounds) if most is sre.MAXREPEAT else max(least, min(most, rounds))
            return _text_of(body, flags, 1 if times > 4 else rounds, branch) * times
        case sre.SUBPATTERN, (_, _, _, body):
            return _text_of(body, flags, rounds, branch)
        case sre.ATOMIC_GROUP, body:
            return _text_of(body, flags, rounds, branch)
        case sre.BRANCH, (_, branches):
            return _text_of(branches[min(branch, len(branches) - 1)], flags, rounds, branch)
        case ((sre.ASSERT | sre.ASSERT_NOT | sre.AT), _):
            return ""
        case sre.GROUPREF, _:
            return "a"
        case _:
            characters = _characters(operation, value, flags)
            return next((c for c in "a1 " if c in characters), min(characters, default=""))


def _build(automaton: _Automaton, nodes: object, flags: int, start: int) -> int:
    """Add what a sequence of nodes matches behind a state, and return the state in which it ends."""
    for operation, value in nodes:
        start = _build_one(automaton, operation, value, flags, start)
    return start


def _build_one(automaton: _Automaton, operation: object, value: object, flags: int, start: int) -> int:
    match operation, value:
        case ((sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT), (least, most, body)):
            return _build_repeat(automaton, least, most, body, flags, start)
        case sre.SUBPATTERN, (_, _, _, body):
            return _build(automaton, body, flags, start)
        case sre.ATOMIC_GROUP, body:
            return _build(automaton, body, flags, start)
        case sre.BRANCH, (_, branches):
            end = automaton.state()
            for branch in branches:
                entry = automaton.state()
                automaton.free[start].add(entry)
                automaton.free[_build(automaton, branch, flags, entry)].add(end)
            return end
        case ((sre.ASSERT | sre.ASSERT_NOT | sre.AT), _):
            return start
        case sre.GROUPREF, _:
            return _step(automaton, start, frozenset(_ALPHABET))
        case _:
            return _step(automaton, start, _characters(operation, value, flags))


def _build_repeat(automaton: _Automaton, least: int, most: int, body: object, flags: int, start: int) -> int:
    end = automaton.state()
    if least == 0:
        automaton.free[start].add(end)
    if most is sre.MAXREPEAT or most >= _LOOP_ROUNDS:
        entry = automaton.state()
        automaton.free[start].add(entry)
        automaton.free[_build(automaton, body, flags, entry)] |= {entry, end}
        return end
    for number in range(1, most + 1):
        entry = automaton.state()
        automaton.free[start].add(entry)
        start = _build(automaton, body, flags, entry)
        if number >= least:
            automaton.free[start].add(end)
    return end


def _step(automaton: _Automaton, start: int, characters: frozenset[str]) -> int:
    end = automaton.state()
    automaton.over[start].append((characters, end))
    return end


def _characters(operation: object, value: object, flags: int) -> frozenset[str]:
    if operation is sre.IN:
        members = [_characters(*item, flags) for item in value if item[0] is not sre.NEGATE]
        union = frozenset[str]().union(*members)
        negated = value[0][0] is sre.NEGATE
        return frozenset(_ALPHABET) - union if negated else union
    if operation is sre.LITERAL:
        return _with_case({chr(value)}, flags)
    if operation is sre.NOT_LITERAL:
        return frozenset(_ALPHABET) - _with_case({chr(value)}, flags)
    if operation is sre.RANGE:
        low, high = value
        return _with_case({c for c in _ALPHABET if low <= ord(c) <= high}, flags)
    if operation is sre.CATEGORY:
        only_ascii = re.ASCII if flags & re.ASCII else 0
        return frozenset(c for c in _ALPHABET if re.fullmatch(_CLASSES[value], c, only_ascii))
    if operation is sre.ANY:
        return frozenset(c for c in _ALPHABET if c != "\n" or flags & re.DOTALL)
    raise NotImplementedError(operation)


def _with_case(characters: set[str], flags: int) -> frozenset[str]:
    if flags & re.IGNORECASE:
        characters = characters | {c.lower() for c in characters} | {c.upper() for c in characters}
    return frozenset(characters)


_Moves = dict[int, list[tuple[frozenset[str], int, int]]]


def _moves_without_free_ones(automaton: _Automaton) -> _Moves:
    """Return each state's moves over a character; the free way to it makes a move of its own of each."""
    return {
        state: [
            (characters, end, way)
            for way, left in enumerate(_freely_reached(automaton, state))
            for characters, end in automaton.over[left]
        ]
        for state in range(automaton.states)
    }


def _freely_reached(automaton: _Automaton, state: int) -> list[int]:
    """Return the states that free moves lead to, once for each of two ways at most.

    A way may pass a state twice: a round of a loop that skips its optional parts up to another one does.
    """
    reached: list[int] = []
    ways = [(state,)]
    while ways:
        way = ways.pop()
        if reached.count(way[-1]) < 2:
            reached.append(way[-1])
            ways += [(*way, after) for after in automaton.free[way[-1]] if way.count(after) < 2]
    return reached


def _doubled_loop(moves: _Moves, state: int) -> str | None:
    """Return a character of a text that leads from a state back to it in two different ways."""
    reached: set[tuple[int, int, bool]] = {(state, state, False)}
    open_pairs = [(state, state, False)]
    while open_pairs:
        first, second, differ = open_pairs.pop()
        for character, after in _shared_moves(moves, first, second, differ):
            if after == (state, state, True):
                return character
            if after not in reached:
                reached.add(after)
                open_pairs.append(after)
    return None


def _shared_moves(
    moves: _Moves, first: int, second: int, differ: bool
) -> Iterator[tuple[str, tuple[int, int, bool]]]:
    for characters, end, way in moves[first]:
        for others, other_end, other_way in moves[second]:
            if shared := characters & others:
                parted = end != other_end or (first == second and way != other_way)
                yield min(shared), (end, other_end, differ or parted)
