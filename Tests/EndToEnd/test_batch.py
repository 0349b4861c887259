"""Tests of `image-worker batch`: many files without a server."""

import io
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import FIXTURES, fixture_bytes, wait_until
from PIL import Image
from telemetry import trace_events

ARGUMENTS = ["--preset", "favicon", "--json"]


def start(*arguments, **options):
    return subprocess.Popen(
        [os.environ["IMAGE_WORKER"], "batch", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **options)


def run(*arguments, **options):
    process = start(*arguments, **options)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def lines(output):
    """The results, without the summary behind them."""
    told = [json.loads(line) for line in output.splitlines()]
    assert list(told[-1]) == ["summary"] and told[-1]["summary"]["images"] == len(told) - 1
    return told[:-1]


@pytest.fixture
def folder(tmp_path):
    """Five images in two folders, a text file, a truncated image, and a hidden file."""
    images = tmp_path / "in"
    (images / "below").mkdir(parents=True)
    for name in ["a.jpg", "b.jpg", "below/c.jpg"]:
        (images / name).write_bytes(fixture_bytes("photo-420.jpg"))
    (images / "a.png").write_bytes(fixture_bytes("photo.png"))
    (images / "below/alpha.png").write_bytes(fixture_bytes("alpha.png"))
    (images / "cut.jpg").write_bytes(fixture_bytes("photo-420.jpg")[:3000])
    (images / "notes.txt").write_text("only words, many of them, and no image")
    (images / ".hidden.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    return images


RESULTS = ["a.jpg.jpg", "a.png.jpg", "b.jpg", "below/alpha.jpg", "below/c.jpg"]


def files(directory):
    """The names of all files but those of the journal."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*")
                  if path.is_file() and ".image-worker" not in path.parts)


def test_a_folder_is_processed_whatever_fails_in_it(folder, tmp_path):
    out = tmp_path / "out"
    code, output, errors = run(folder, "--out", out, *ARGUMENTS)
    assert code == 1 and not errors
    told = {os.path.relpath(line["input"], folder): line for line in lines(output)}
    assert {name: line["status"] for name, line in told.items()} == {
        "a.jpg": "done", "a.png": "done", "b.jpg": "done", "below/c.jpg": "done", "below/alpha.png": "done",
        "cut.jpg": "failed", "notes.txt": "ignored"}
    summary = json.loads(output.splitlines()[-1])["summary"]
    assert [summary[status] for status in ["images", "done", "failed", "ignored", "skipped"]] == [7, 5, 1, 1, 0]
    assert summary["output_bytes"] == sum((out / name).stat().st_size for name in RESULTS)
    assert told["cut.jpg"]["reason"] == "TRUNCATED_IMAGE"
    assert told["cut.jpg"]["error"]["code"] == "TRUNCATED_IMAGE" and told["cut.jpg"]["error"]["message"]
    assert files(out) == RESULTS
    single = tmp_path / "single"
    subprocess.run([os.environ["IMAGE_WORKER"], "process", folder / "b.jpg", "--preset", "favicon", "--out", single, "--quiet"],
                   check=True)
    assert (out / "b.jpg").read_bytes() == (single / "b.jpg").read_bytes()
    for name, line in told.items():
        if line["status"] == "done":
            with Image.open(line["output"]) as image:
                assert (image.width, image.height) == (line["width"], line["height"]), name
            assert os.path.getsize(line["output"]) == line["output_bytes"]
            assert line["input_bytes"] == os.path.getsize(folder / name)
            assert line["peak_memory_bytes"] > 0 and line["timings"]["decode"] > 0


def test_an_error_after_the_last_image_interrupts_nothing(folder, tmp_path):
    out = tmp_path / "out"
    (out / ".image-worker/failures.jsonl/file").mkdir(parents=True)
    status, output, errors = run(folder, "--out", out, *ARGUMENTS)
    summary = json.loads(output.splitlines()[-1])["summary"]
    assert status == 1 and "failures.jsonl cannot be written" in errors
    assert summary["images"] == summary["total"] and summary["interrupted"] is False


def test_a_list_names_images_and_text_tells_of_them(folder, tmp_path):
    listed = tmp_path / "list"
    listed.write_text(f"{folder / 'b.jpg'}\n\n{folder / 'missing.jpg'}\n{folder / 'notes.txt'}\n")
    code, output, errors = run("--list", listed, "--out", tmp_path / "out", "--preset", "favicon", "--jobs", "1")
    assert code == 1
    assert output.splitlines()[0].startswith(f"{folder / 'b.jpg'}: jpeg 240x160, ")
    assert output.splitlines()[-2].startswith("3 images in ")
    assert output.splitlines()[-2].endswith(": 1 done, 2 failed")  # files named explicitly are processed
    assert "missing.jpg: FILE: " in errors and "notes.txt: UNKNOWN_FORMAT: " in errors
    code, output, _ = run("--list", "-", "--out", tmp_path / "again", *ARGUMENTS, stdin=open(listed))
    assert code == 1 and [line["status"] for line in lines(output)].count("done") == 1
    assert run("--out", tmp_path / "out")[0] == 64
    assert run(folder, "--out", tmp_path / "out", "--jobs", "0")[0] == 64


def test_a_list_may_come_from_a_pipe_and_keep_its_folders(folder, tmp_path):
    names = b"\0".join(os.fsencode(folder / name) for name in ["b.jpg", "below/c.jpg"])
    command = [os.environ["IMAGE_WORKER"], "batch", "--list", "-", "--null", "--root", folder, "--out", tmp_path / "out"]
    subprocess.run([*command, "--preset", "favicon", "--quiet"], input=names, check=True, timeout=60)
    assert files(tmp_path / "out") == ["b.jpg", "below/c.jpg"]


def test_no_result_replaces_an_image_under_another_name(folder, tmp_path):
    """As where a folder is mounted twice, or names differ in case alone."""
    out = tmp_path / "out"
    (out / "below").mkdir(parents=True)
    original = (folder / "b.jpg").read_bytes()
    os.link(folder / "b.jpg", out / "b.jpg")
    os.symlink(folder / "below/c.jpg", out / "below/c.jpg")
    told = {os.path.relpath(line["input"], folder): line for line in lines(run(folder, "--out", out, *ARGUMENTS)[1])}
    for name in ["b.jpg", "below/c.jpg"]:
        assert told[name]["status"] == "failed" and "its result would replace it" in told[name]["error"]["message"]
        assert (folder / name).read_bytes() == original and (out / name).read_bytes() == original
    single = subprocess.run([os.environ["IMAGE_WORKER"], "process", folder / "b.jpg", "--max-width", "20", "--out", out],
                            capture_output=True, text=True)
    assert single.returncode == 1 and "its result would replace it" in single.stderr
    assert (folder / "b.jpg").read_bytes() == original


def test_no_result_replaces_that_of_another_folder(folder, tmp_path):
    other, out = tmp_path / "other", tmp_path / "out"
    other.mkdir()
    (other / "b.jpg").write_bytes(fixture_bytes("photo-444.jpg"))
    assert run(folder / "b.jpg", "--out", out, *ARGUMENTS)[0] == 0
    before = (out / "b.jpg").read_bytes()
    code, output, _ = run(other, "--out", out, *ARGUMENTS)
    assert code == 1 and "the same name as the result of" in lines(output)[0]["error"]["message"]
    assert (out / "b.jpg").read_bytes() == before
    # The same image at a new place, and an image in place of one that is gone, are processed.
    (folder / "b.jpg").rename(folder / "moved.jpg")
    assert run(other, "--out", out, *ARGUMENTS)[0] == 0 and (out / "b.jpg").read_bytes() != before


def test_a_list_says_how_its_entries_end(folder, tmp_path):
    listed = tmp_path / "list"
    listed.write_bytes(b"\0".join(os.fsencode(folder / name) for name in ["a.jpg", "b.jpg"]) + b"\0")
    code, _, errors = run("--list", listed, "--out", tmp_path / "out", *ARGUMENTS)
    assert code == 64 and "--list has entries that end with NUL; add --null" in errors
    listed.write_bytes(b"\xef\xbb\xbf" + os.fsencode(folder / "b.jpg") + b"\n" + os.fsencode(folder / "b.jpg") + b"\n")
    code, output, _ = run("--list", listed, "--root", folder, "--out", tmp_path / "out", *ARGUMENTS)
    assert code == 0 and len(lines(output)) == 1 and files(tmp_path / "out") == ["b.jpg"]
    listed.write_bytes(b"gone/b.jpg\n" + os.fsencode(folder / "a.jpg") + b"\n")
    code, output, _ = run("--list", listed, "--root", folder, "--out", tmp_path / "out", *ARGUMENTS)
    assert code == 1 and sorted(line["status"] for line in lines(output)) == ["done", "failed"]


def test_overrides_in_csv_are_json_as_in_lines(folder, tmp_path):
    manifest = tmp_path / "rows.csv"
    manifest.write_text(f'path,overrides\n{folder / "b.jpg"},"{{""metadata_title"": ""\\ud83c\\udf89""}}"\n')
    assert run("--manifest", manifest, "--out", tmp_path / "out", "--preset", "favicon")[0] == 0
    manifest.write_text(f'path,overrides\n{folder / "b.jpg"},"{{""max_width"": 1, ""max_width"": 2}}"\n')
    code, _, errors = run("--manifest", manifest, "--out", tmp_path / "out", "--preset", "favicon")
    assert code == 64 and 'the key "max_width" is repeated' in errors


#: Latin-1; bytes that look like the beginning of a character; and the character that stands for 0xE9 in JSON.
RAW_NAMES = [b"caf\xe9", b"caf\xe8", b"\xe2\x82", "\U0010fee9".encode(), "caf\u00e9".encode()]


@pytest.mark.parametrize("way", ["folder", "arguments", "list", "manifest", "workers"])
def test_names_need_not_be_text(tmp_path, way, request):
    """Results have the bytes of the names, and a second run and the list of failures find the images again."""
    images, out = os.fsencode(tmp_path / "in"), os.fsencode(tmp_path / "out")
    os.mkdir(images)
    paths = [os.path.join(images, name + b".jpg") for name in RAW_NAMES]
    for path in paths[1:]:
        open(path, "wb").write(fixture_bytes("photo-420.jpg"))
    open(paths[0], "wb").write(fixture_bytes("photo-420.jpg")[:3000])
    command = [os.environ["IMAGE_WORKER"], "batch", "--out", out, *ARGUMENTS]
    inputs = {"arguments": paths, "list": ["--list", "-", "--null"]}.get(way, [images])
    if way == "workers":
        inputs = [*inputs, "--to", request.getfixturevalue("worker").address]

    def batch(*arguments):
        done = subprocess.run([*command, *arguments], input=b"\0".join(paths), capture_output=True, timeout=60)
        return done.returncode, {line["input"]: line["status"] for line in lines(done.stdout.decode())}

    code, told = batch(*inputs)
    assert code == 1 and len(told) == len(paths) and list(told.values()).count("done") == len(paths) - 1, told
    written = [name for name in os.listdir(out) if name != b".image-worker"]
    assert sorted(written) == sorted(name + b".jpg" for name in RAW_NAMES[1:])
    assert told[str(tmp_path / "in") + "/caf\U0010fee9.jpg"] == "failed"
    if way == "manifest":
        open(paths[0], "wb").write(fixture_bytes("photo-420.jpg"))
        code, told = batch("--manifest", os.path.join(out, b".image-worker/failures.jsonl"))
        assert code == 0 and list(told.values()) == ["done"] and RAW_NAMES[0] + b".jpg" in os.listdir(out)
    else:
        code, told = batch(*inputs)
        assert code == 1 and list(told.values()).count("skipped") == len(paths) - 1, told


def test_a_name_that_is_no_text_is_shown_with_its_bytes(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.jpg")
    open(path, "wb").write(fixture_bytes("photo-420.jpg"))
    out = tmp_path / "out"
    done = subprocess.run(
        [os.environ["IMAGE_WORKER"], "process", path, "--preset", "favicon", "--out", out], capture_output=True, timeout=60)
    assert done.returncode == 0 and f"{tmp_path}/caf\\xe9.jpg: jpeg 240x160" in done.stdout.decode()
    assert os.listdir(os.fsencode(out)) == [b"caf\xe9.jpg"]


def test_what_is_there_is_skipped_and_what_is_not_is_made(folder, tmp_path):
    out = folder / "out"  # its files are results, not images to process
    (folder / "cut.jpg").unlink()
    assert run(folder, "--out", out, *ARGUMENTS)[0] == 0
    assert files(out) == RESULTS
    times = {name: (out / name).stat().st_mtime_ns for name in RESULTS}
    (out / "b.jpg").unlink()
    code, output, _ = run(folder, "--out", out, "--skip-existing", *ARGUMENTS)
    told = {os.path.relpath(line["input"], folder): line["status"] for line in lines(output)}
    assert code == 0 and files(out) == RESULTS
    assert [name for name, status in told.items() if status == "done"] == ["b.jpg"]
    assert list(told.values()).count("skipped") == 4
    assert all((out / name).stat().st_mtime_ns == times[name] for name in RESULTS if name != "b.jpg")


def test_folders_that_link_to_each_other_are_read_once(tmp_path):
    for number in range(9):
        folder = tmp_path / f"in/{number}"
        folder.mkdir(parents=True)
        (folder / f"{number}.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
        for other in range(9):
            if other != number:
                (folder / f"to-{other}").symlink_to(f"../{other}")
    code, output, _ = run(tmp_path / "in", "--out", tmp_path / "out", *ARGUMENTS)
    assert code == 0 and [line["status"] for line in lines(output)] == ["done"] * 9


def test_what_cannot_be_read_in_a_folder_fails_by_itself(folder, tmp_path, monkeypatch):
    (folder / "cut.jpg").unlink()
    os.mkfifo(folder / "pipe.jpg")
    os.mkfifo(folder / "pipe")
    closed = folder / "closed"
    closed.mkdir(mode=0)
    # Root may read everything.
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    for path in [tmp_path, *tmp_path.parents]:
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    code, output, errors = run(folder, "--out", out, *ARGUMENTS, **user)
    assert code == 1 and not errors
    told = {os.path.relpath(line["input"], folder): line for line in lines(output)}
    assert {name: line["status"] for name, line in told.items() if line["status"] != "done"} == {
        "closed": "failed", "pipe.jpg": "ignored", "pipe": "ignored", "notes.txt": "ignored"}
    assert told["closed"]["error"]["message"].startswith("the folder cannot be read: ") and files(out) == RESULTS


def test_files_whose_names_begin_with_a_dash_are_named(folder, tmp_path):
    (folder / "-horse.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    for command in "batch", "process", "inspect":
        called = subprocess.run(
            [os.environ["IMAGE_WORKER"], command, "-horse.jpg", "a.jpg"], cwd=folder, capture_output=True, text=True, timeout=60)
        assert called.returncode == 64 and "there is no option -horse.jpg; for a file with this name, write ./-horse.jpg" in called.stderr
    assert run("./-horse.jpg", "--out", tmp_path / "out", *ARGUMENTS, cwd=folder)[0] == 0
    assert run("--out", tmp_path / "other", *ARGUMENTS, "--", "-horse.jpg", cwd=folder)[0] == 0
    assert files(tmp_path / "out") == files(tmp_path / "other") == ["-horse.jpg"]
    assert run("a.jpg", "--out", tmp_path / "titled", "--metadata-title", "-draft", *ARGUMENTS, cwd=folder)[0] == 0


def test_links_and_missing_files_have_their_own_place_below_the_root(folder, tmp_path):
    (folder / "below/link.jpg").symlink_to("../a.jpg")
    (folder / "below/lost.jpg").symlink_to("nowhere.jpg")
    listed = "\n".join(str(folder / name) for name in ["below/link.jpg", "below/lost.jpg", "gone.jpg"])
    (tmp_path / "list").write_text(listed)
    out = tmp_path / "out"
    code, output, _ = run("--list", tmp_path / "list", "--root", folder, "--out", out, *ARGUMENTS)
    assert code == 1 and sorted(line["status"] for line in lines(output)) == ["done", "failed", "failed"]
    assert files(out) == ["below/link.jpg"]


def test_a_dry_run_changes_nothing(folder, tmp_path):
    out = tmp_path / "out"
    (folder / "cut.jpg").unlink()
    assert run(folder / "a.jpg", "--out", out, *ARGUMENTS)[0] == 0
    journal = out / ".image-worker/journal.jsonl"
    with journal.open("a") as file:
        file.write('{"place"')  # of a run that was killed
    before = journal.read_bytes()
    journal.chmod(0o444)
    (out / "b.jpg").mkdir()  # no result
    (out / "c.jpg").write_bytes(b"a result")
    named = [folder / name for name in ["a.jpg", "b.jpg", "below/c.jpg"]]
    for options, finished in [([], 1), (["--skip-existing"], 2)]:
        code, output, errors = run(*named, "--out", out, "--dry-run", *options, *ARGUMENTS)
        assert code == 0 and not errors and json.loads(output)["estimate"]["finished"] == finished
    assert journal.read_bytes() == before
    code, output, _ = run(*named[1:], "--out", out, "--skip-existing", *ARGUMENTS)
    assert sorted(line["status"] for line in lines(output)) == ["failed", "skipped"] and code == 1


def test_failures_remain_until_their_images_end_or_go(folder, tmp_path):
    out = tmp_path / "out"
    (folder / "gone.jpg").write_bytes(b"\xff\xd8\xff")
    failures = out / ".image-worker/failures.jsonl"

    def failed():
        return [os.path.basename(json.loads(line)["path"]) for line in failures.read_text().splitlines()]

    assert run(folder / "cut.jpg", folder / "gone.jpg", "--out", out, *ARGUMENTS)[0] == 1
    assert sorted(failed()) == ["cut.jpg", "gone.jpg"]
    (folder / "gone.jpg").unlink()
    assert run(folder / "a.jpg", "--out", out, *ARGUMENTS)[0] == 0
    assert failed() == ["cut.jpg"]
    assert run(folder / "cut.jpg", "--out", out, "--tolerate-truncation", *ARGUMENTS)[0] == 0
    assert not failures.exists()


def test_a_result_never_replaces_its_input(folder):
    before = (folder / "b.jpg").read_bytes()
    code, output, _ = run(folder / "b.jpg", "--out", folder, *ARGUMENTS)
    assert code == 1 and "replace it" in lines(output)[0]["error"]["message"]
    assert (folder / "b.jpg").read_bytes() == before


@pytest.fixture
def many(tmp_path):
    """Images that take long enough for a signal to arrive in between."""
    images = tmp_path / "many"
    images.mkdir()
    data = io.BytesIO()
    Image.open(FIXTURES / "photo-420.jpg").resize((2000, 1500)).save(data, "jpeg")
    for number in range(60):
        (images / f"{number:02}.jpg").write_bytes(data.getvalue())
    return images


LARGE = ["--preset", "highDefinition", "--json"]


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_is_told_apart_from_failed_images(many, tmp_path, signals):
    (many / "00.jpg").write_bytes((many / "01.jpg").read_bytes()[:3000])
    out = tmp_path / "out"
    process = start(many, "--out", out, *LARGE)
    assert wait_until(lambda: any(not name.startswith(".") for name in files(out)))
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    output, _ = process.communicate(timeout=60)
    told = lines(output)
    assert process.returncode == 130 and len(told) < 60
    assert [os.path.basename(line["input"]) for line in told if line["status"] == "failed"] == ["00.jpg"]
    failures = (out / ".image-worker" / "failures.jsonl").read_text().splitlines()
    assert len(failures) == 1 and "00.jpg" in failures[0]


def test_a_signal_lets_what_is_begun_finish_and_the_rest_can_follow(many, tmp_path):
    out = tmp_path / "out"
    process = start(many, "--out", out, *LARGE)
    assert wait_until(lambda: any(not name.startswith(".") for name in files(out)))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    told = lines(output)
    assert process.returncode == 130 and len(told) < 60
    assert {line["status"] for line in told} == {"done"}
    assert files(out) == sorted(os.path.basename(line["output"]) for line in told)
    code, output, _ = run(many, "--out", out, "--skip-existing", *LARGE)
    assert code == 0 and [line["status"] for line in lines(output)].count("skipped") == len(told)
    assert len({(out / name).read_bytes() for name in files(out)}) == 1 and len(files(out)) == 60


def test_killed_anywhere_it_loses_nothing(many, tmp_path):
    out = tmp_path / "out"
    for _ in range(5):
        process = start(many, "--out", out, "--skip-existing", *LARGE)
        assert wait_until(lambda: out.exists())
        time.sleep(0.3)
        process.kill()
        process.communicate()
    whole = [name for name in files(out) if not os.path.basename(name).startswith(".")]
    code, output, _ = run(many, "--out", out, "--skip-existing", *LARGE)
    assert code == 0 and [line["status"] for line in lines(output)].count("skipped") == len(whole)
    names = [name for name in files(out) if not name.startswith(".")]
    assert len(names) == 60 and len({(out / name).read_bytes() for name in names}) == 1


def test_threads_have_lanes_of_their_own(many, tmp_path):
    trace = tmp_path / "trace.json"
    code, _, errors = run(many, "--out", tmp_path / "out", *LARGE, "--jobs", "3", "--trace-out", trace)
    assert code == 0, errors
    events = trace_events(trace)
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    work = [event for event in events if event["ph"] == "X"]
    assert {event["args"]["image"] for event in work} == {str(path) for path in many.iterdir()}
    threads = {lane.split(", ")[1] for lane in lanes.values()}
    assert 2 <= len(threads) <= 3
    for thread in threads:
        stages = {lane.split(", ")[0] for lane in lanes.values() if lane.endswith(thread)}
        assert stages == {"image", "decode", "resize", "encode"}
    # A thread does one thing at a time, so events in a lane never overlap.
    for lane in lanes:
        ends = sorted((event["ts"], event["ts"] + event["dur"]) for event in work if event["tid"] == lane)
        assert all(end <= begin + 0.01 for (_, end), (begin, _) in zip(ends, ends[1:]))
    # Different threads work at the same time.
    images = [event for event in work if event["name"] == "image"]
    assert any(a["tid"] != b["tid"] and a["ts"] < b["ts"] + b["dur"] and b["ts"] < a["ts"] + a["dur"]
               for a in images for b in images)
