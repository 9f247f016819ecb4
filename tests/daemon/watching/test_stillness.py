"""When a file has stopped growing."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from daemon.watching.stillness import Look, Stillness, free_name, is_unfinished

TALK, NOTE = Path("/w/anna/talk.mp3"), Path("/w/anna/note.mp3")


def a_look(**changes: int) -> Look:
    """Return what a file looks like."""
    return Look(**{"inode": 1, "size": 10, "changed_ns": 5, **changes})


def test_a_file_is_still_once_it_has_looked_the_same_for_so_long() -> None:
    """Not at the first look, however old it is; and every growth begins anew."""
    stillness = Stillness()
    assert stillness.still({TALK: a_look()}, 0.0, 10.0) == []
    assert stillness.still({TALK: a_look()}, 9.9, 10.0) == []
    assert stillness.still({TALK: a_look()}, 10.0, 10.0) == [TALK]
    for other in ({"size": 11}, {"changed_ns": 6}, {"inode": 2}):
        assert stillness.still({TALK: a_look(**other)}, 20.0, 10.0) == []
    assert stillness.look_of(TALK) == a_look(inode=2)


def test_a_file_that_was_away_is_a_new_one() -> None:
    """Its time begins when it is there again."""
    stillness = Stillness()
    stillness.still({TALK: a_look()}, 0.0, 10.0)
    stillness.still({}, 5.0, 10.0)
    assert stillness.still({TALK: a_look()}, 12.0, 10.0) == []


def test_what_was_left_comes_again_when_it_looks_otherwise() -> None:
    """A file that could not be read is not tried at every look."""
    stillness = Stillness()
    stillness.still({TALK: a_look()}, 0.0, 0.0)
    stillness.leave(TALK)
    assert stillness.still({TALK: a_look()}, 1.0, 0.0) == []
    assert stillness.still({TALK: a_look(changed_ns=6)}, 2.0, 0.0) == [TALK]


def test_the_order_is_that_of_the_last_changes() -> None:
    """What was put there first is taken first."""
    looks = {TALK: a_look(changed_ns=9), NOTE: a_look(changed_ns=8)}
    assert Stillness().still(looks, 0.0, 0.0) == [NOTE, TALK]


def test_files_that_are_being_written_by_their_names() -> None:
    """Hidden ones, and what browsers and copiers call what they have not finished."""
    for name in (".talk.mp3", "talk.mp3.part", "talk.CRDOWNLOAD", "talk.mp3.filepart", "talk.mp3~"):
        assert is_unfinished(name)
    for name in ("talk.mp3", "part", "talk.partly.mp3", "talk"):
        assert not is_unfinished(name)


@given(st.text(min_size=1, max_size=20), st.sets(st.text(max_size=20), max_size=5), st.integers(0, 4))
def test_a_free_name_is_free(name: str, others: set[str], twice: int) -> None:
    """It is the name itself where that is free, and keeps its ending."""
    taken = set(others)
    for _ in range(twice):
        taken.add(free_name(name, taken))
    free = free_name(name, taken)
    assert free not in taken
    assert (free == name) == (name not in taken)
    if name.rpartition(".")[0]:
        assert free.endswith(name[name.rindex(".") :])


def test_a_free_name_reads_well() -> None:
    """The number stands before the ending."""
    assert free_name("talk.mp3", {"talk.mp3", "talk (2).mp3"}) == "talk (3).mp3"
    assert free_name("talk", {"talk"}) == "talk (2)"
    assert free_name(".mp3", {".mp3"}) == ".mp3 (2)"
