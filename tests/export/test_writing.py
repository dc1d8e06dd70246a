"""Files are replaced whole, and what is no regular file is never replaced: a device, a pipe, a socket, a link."""

import os
import socket
import stat
from threading import Thread

import numpy as np
import pytest

import pauca
from pauca import SparseRegressor
from pauca.cli import main
from pauca.export.json_files import write_atomically

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = X[:, 1] + 0.1 * RNG.standard_normal(40)


def device(name, tmp_path):
    """A character device; a copy of it where one may be made, so that a failing test does no harm."""
    path = tmp_path / name
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.stat(f"/dev/{name}").st_rdev)
        path.open("wb").close()
    except OSError:
        return f"/dev/{name}"
    return str(path)


def writers():
    model = SparseRegressor(k=1).fit(X, Y)
    return {"write": lambda path: write_atomically(path, b"text"), "save": model.save, "report": model.report}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="devices of Linux")
@pytest.mark.parametrize("name", writers())
def test_devices_are_written_to_and_stay_devices(name, tmp_path):
    write = writers()[name]
    null, full = device("null", tmp_path), device("full", tmp_path)
    before = sorted(os.listdir(tmp_path))
    write(null)
    with pytest.raises(OSError, match="No space left"):
        write(full)
    assert stat.S_ISCHR(os.stat(null).st_mode)
    assert stat.S_ISCHR(os.stat(full).st_mode)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_pipe_gets_the_content(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_atomically(path, b"text")
    reader.join()
    assert read == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_socket_and_a_folder_are_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(OSError, match="neither a file nor a device"):
            write_atomically("socket", b"text")
        assert stat.S_ISSOCK(os.stat("socket").st_mode)
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"text")


def test_errors_are_about_the_name_that_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="''"):
        write_atomically("", b"text")
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically("no folder/model.json", b"text")
    assert caught.value.filename == str(tmp_path / "no folder" / "model.json")


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    longest = tmp_path / ("\N{CJK UNIFIED IDEOGRAPH-6A21}" * 85)  # 255 bytes
    write_atomically(longest, b"text")
    assert longest.read_bytes() == b"text"
    assert os.listdir(tmp_path) == [longest.name]


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for content in (b"one", b"two"):  # the target does not exist yet, and does
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"")
    path.chmod(0o600)
    SparseRegressor(k=1).fit(X, Y).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert pauca.load(path).k_ == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="devices of Linux")
def test_the_command_line_writes_to_devices(tmp_path, capsys):
    table, model = tmp_path / "table.csv", tmp_path / "model.json"
    np.savetxt(table, np.column_stack([X, Y]), delimiter=",", header="a,b,c,y", comments="")
    null, full = device("null", tmp_path), device("full", tmp_path)
    assert main(["fit", str(table), "--target", "y", "--k", "1", "--out", null, "--report", null]) == 0
    assert main(["fit", str(table), "--target", "y", "--k", "1", "--out", full]) != 0
    assert "No space left" in capsys.readouterr().err
    assert main(["fit", str(table), "--target", "y", "--k", "1", "--out", str(model)]) == 0
    assert main(["predict", str(model), str(table), "--out", null]) == 0
    assert main(["predict", str(model), str(table), "--out", full]) != 0
    assert stat.S_ISCHR(os.stat(null).st_mode)
    assert stat.S_ISCHR(os.stat(full).st_mode)
