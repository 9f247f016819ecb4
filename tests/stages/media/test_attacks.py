"""A file that asks for others, or for the network, gets neither: kernel and server are the witnesses."""

import socket
from pathlib import Path

import pytest

from tests.stages.media.fuzz.harness import Harness
from tests.stages.media.studio import PLAYLIST
from tests.stages.media.watching import noting_opens


@pytest.fixture
def server() -> socket.socket:
    """A server that waits for somebody to come."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)  # noqa: FBT003 - the socket's own way
    return listening


def attacks(neighbour: Path, port: int) -> dict[str, str]:
    """Return what each playlist says that wants to read the neighbour or the server."""
    wanted = {
        "neighbour": neighbour.name,
        "path": str(neighbour),
        "url": f"file://{neighbour}",
        "up": f"../{neighbour.parent.name}/{neighbour.name}",
        "server": f"http://127.0.0.1:{port}/x.mp3",
        "data": "data:audio/mpeg;base64,AAAA",
        "joined": f"concat:{neighbour}|{neighbour}",
        "sub": f"subfile,,start,0,end,100,,:{neighbour}",
    }
    texts = {f"hls_{name}": PLAYLIST.format(each) for name, each in wanted.items()}
    texts |= {f"concat_{name}": f"ffconcat version 1.0\nfile '{each}'\n" for name, each in wanted.items()}
    texts["sdp"] = (
        f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio {port} RTP/AVP 0\n"
    )
    texts["dash"] = (
        '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
        f'<AdaptationSet><Representation id="0"><BaseURL>{neighbour}</BaseURL></Representation>'
        "</AdaptationSet></Period></MPD>\n"
    )
    return texts


def test_s_r3_the_attacks_read_nothing(shelf: Path, tmp_path: Path, server: socket.socket) -> None:
    """Neither in the source's own folder, nor in another, nor over a connection."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for folder in (tmp_path, theirs):
        (folder / "neighbour.mp3").write_bytes((shelf / "mp3.mp3").read_bytes())
    with (
        Harness(tmp_path) as harness,
        noting_opens(tmp_path) as opened,
        noting_opens(theirs) as opened_of_others,
    ):
        for folder in (tmp_path, theirs):
            for name, text in attacks(folder / "neighbour.mp3", server.getsockname()[1]).items():
                assert harness.judge(text.encode()).kind == "not_media", name
    # The harness looks into its folder beside the source, and nobody into anything else.
    assert set(opened) == {"source", "attempt"}
    assert opened_of_others == []
    with server, pytest.raises(BlockingIOError):
        server.accept()


def test_an_opened_neighbour_would_be_noticed(tmp_path: Path) -> None:
    """The witness sees what is opened."""
    (tmp_path / "neighbour.mp3").touch()
    with noting_opens(tmp_path) as opened:
        (tmp_path / "neighbour.mp3").read_bytes()
    assert opened == ["neighbour.mp3"]
