"""Damaged recordings, each from its seed alone: bits turned, ends lost, pieces put in, sizes made absurd."""

from collections.abc import Callable, Sequence

import numpy as np

Chance = np.random.Generator
Mutation = Callable[[bytearray, Chance, Sequence[bytes]], bytearray]

LONGEST = 60_000  # bytes of a whole file that are taken: thousands of them must be decoded
_HEAD = 400  # where most formats keep what they promise
_ABSURD = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0xFFFFFFFFFFFFFFFF,
)


def mutant(seed: int, whole: Sequence[bytes]) -> bytes:
    """Return the recording of that seed, made from one or two of the whole ones by one to four mutations."""
    chance = np.random.default_rng(seed)
    data = bytearray(_one_of(whole, chance)[:LONGEST])
    for _ in range(chance.integers(1, 5)):
        data = MUTATIONS[chance.integers(len(MUTATIONS))](data, chance, whole)
    return bytes(data)


def _one_of(whole: Sequence[bytes], chance: Chance) -> bytes:
    return whole[int(chance.integers(len(whole)))]


def _place(data: bytearray, chance: Chance) -> int:
    """Choose a place, half of the time in the head."""
    end = len(data) if chance.random() < 0.5 else min(len(data), _HEAD)
    return int(chance.integers(max(end, 1)))


def _turn_bits(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    for _turn in range(chance.choice([1, 3, 30, 300])):
        if data:
            data[_place(data, chance)] ^= 1 << int(chance.integers(8))
    return data


def _put_numbers(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    """Write absurd numbers where sizes, counts and rates may stand."""
    for _number in range(chance.integers(1, 4)):
        size = int(chance.choice([1, 2, 4, 8]))
        number = int(_ABSURD[chance.integers(len(_ABSURD))]) & (1 << 8 * size) - 1
        at = _place(data, chance)
        data[at : at + size] = number.to_bytes(size, "little" if chance.random() < 0.5 else "big")
    return data


def _lose_the_end(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    return data[: _place(data, chance)]


def _lose_a_piece(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    at = _place(data, chance)
    del data[at : at + int(chance.choice([1, 7, 100, 5000]))]
    return data


def _zero_a_piece(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    at, size = _place(data, chance), int(chance.choice([1, 16, 512, 20_000]))
    data[at : at + size] = bytes(min(size, max(len(data) - at, 0)))
    return data


def _repeat_a_piece(data: bytearray, chance: Chance, _: Sequence[bytes]) -> bytearray:
    at, size = _place(data, chance), int(chance.choice([1, 40, 3000]))
    data[at:at] = data[at : at + size] * int(chance.integers(1, 10))
    return data[: 3 * LONGEST]


def _splice(data: bytearray, chance: Chance, whole: Sequence[bytes]) -> bytearray:
    """Go on as another recording from some place on."""
    other = _one_of(whole, chance)[:LONGEST]
    return bytearray(data[: _place(data, chance)] + other[_place(bytearray(other), chance) :])


def _put_another_in(data: bytearray, chance: Chance, whole: Sequence[bytes]) -> bytearray:
    other = _one_of(whole, chance)[:LONGEST]
    at = _place(data, chance)
    data[at:at] = other[: int(chance.choice([20, 500, LONGEST]))]
    return data


MUTATIONS: tuple[Mutation, ...] = (
    _turn_bits,
    _put_numbers,
    _lose_the_end,
    _lose_a_piece,
    _zero_a_piece,
    _repeat_a_piece,
    _splice,
    _put_another_in,
)
