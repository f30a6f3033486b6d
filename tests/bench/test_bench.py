"""The benchmarks measure what they say. Times are never asserted, only what is counted."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers.command import exit_code

from bcn.bench.baselines import bench_baselines
from bcn.bench.jobs import Form, inference, inputs, relation, training
from bcn.bench.measure import Spread, Timing, alternate
from bcn.bench.memory import peak_memory
from bcn.bench.peak import fraction_of_matmul_peak, required_flops
from bcn.bench.profile import bench_profile
from bcn.bench.profile import draw as draw_profile
from bcn.bench.render import bench_render
from bcn.bench.scaling import draw, exponent, macs
from bcn.cli.bench import bench
from bcn.models.registry import list_models
from bcn.paper.hours import GPU_FLOPS, hours
from bcn.paper.measurements import baselines, write_measurements
from bcn.paper.tables import find_recipe

COMMANDS = [command.callback.__name__.replace("_", "-") for command in bench.registered_commands if command.callback]


def test_cases_run_by_turns() -> None:
    seen: list[str] = []
    cases: dict[str, Callable[[], object]] = {name: partial(seen.append, name) for name in "ab"}
    timings = alternate(cases, rounds=3, seconds=0)
    assert seen[-6:] == ["a", "b"] * 3
    for timing in timings.values():
        assert len(timing.rounds) == 3
        assert min(timing.rounds) > 0


def test_ratios_are_taken_round_by_round() -> None:
    ours, theirs = Timing((1.0, 2.0, 4.0, 1.0, 2.0)), Timing((3.0, 6.0, 12.0, 3.0, 8.0))
    assert ours.ratio(theirs) == {"median": 3.0, "low": 3.0, "high": 3.0}
    assert ours.ratio(theirs, 0.5)["median"] == 1.5
    assert ours.per_second(10) == {"median": 5.0, "low": 5.0, "high": 10.0}
    assert Spread.of([2.0]) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("form", ["ours", "reference"])
@pytest.mark.parametrize("name", ["sort-of-clevr/multirn", "sort-of-clevr/rn", "scaled-mnist/bcn", "stl10/bcn"])
def test_jobs_run_in_both_forms(name: str, form: Form) -> None:
    training(name, form, 2, 2)()
    inference(name, form, 2, 2)()


def test_a_trained_job_asks_real_questions_about_real_images() -> None:
    image, question = inputs("sort-of-clevr/multirn-h", "trained", 2, 36)
    assert image.shape == (2, 3, 75, 75)
    assert question.sum(dim=2).unique().tolist() == [3.0]  # colour, relational or not, subtype
    training("sort-of-clevr/multirn-h", "trained", 2, 2)()


def test_the_page_is_made_from_the_records(tmp_path: Path) -> None:
    bench = Path(__file__).parents[2] / "results" / "bench"
    (page,) = write_measurements(tmp_path / "measurements.md", bench)
    text = page.read_text()
    assert text == (bench.parents[1] / "docs/results/measurements.md").read_text(), "`bcn report` writes it anew"
    speed = json.loads((bench / "speed.json").read_text())["measurements"]["1 thread"]
    ratio = speed["training_speed"]["ratios"]["multirn-h / multirn-h, reference"]
    assert f"| `multirn-h` | `multirn-h, reference` | {ratio['median']:.1f} [" in text
    peak = json.loads((bench / "peak.json").read_text())["measurements"]
    shares = [peak[threads]["36 questions"]["training"] for threads in ("1 thread", "2 threads")]
    cells = [f"{each[key]['median']:.2f} [" for each in shares for key in ("fraction", "cpu_fraction")]
    (line,) = (line for line in text.splitlines() if line.startswith("| training, 36 questions"))
    assert all(cell in line for cell in cells)
    performance = " ".join((bench.parents[1] / "docs/reference/performance.md").read_text().split())
    random, trained = (
        peak["1 thread"]["36 questions"][name]["milliseconds"]["median"] for name in ("training", "training, trained")
    )
    assert f"takes {random:.0f} ms with random weights and {trained:.0f} ms with trained ones" in performance
    assert f"reaches {shares[1]['cpu_fraction']['median']:.2f} of the rate" in performance
    assert f"and {shares[1]['fraction']['median']:.2f} by the clock" in performance
    assert write_measurements(tmp_path / "empty.md", tmp_path / "nowhere") == []
    assert not (tmp_path / "empty.md").exists()


def test_required_flops_are_those_of_the_matrix_products() -> None:
    """multirn-h by hand, 16 images with 20 questions: per image CNN, BCN and g.0; per question g.1 and f."""
    cnn = 38 * 38 * 27 * 24 + (19 * 19 + 100 + 100) * 216 * 24
    bcn = 100 * (24 * 128 + 128 * 128 + 128 * 256)
    g_first = 100 * 24 * 256 + 256 * 256
    question = 11 * 256 + 100 * 256 * 256 + 2 * 256 * 256 + 256 * 10
    planes = 100 * 3 * (128 + 256)  # once for all images
    forward = 16 * (cnn + bcn + g_first + 20 * question)
    found = required_flops("sort-of-clevr/multirn-h", 16, 20)
    assert found["inference"] == pytest.approx(2 * forward, abs=2 * planes)
    assert found["training"] == pytest.approx(2 * (3 * forward - 16 * 38 * 38 * 27 * 24), abs=6 * planes)


def test_the_peak_is_a_ratio_of_rates() -> None:
    measured = fraction_of_matmul_peak(2, 1, 0)
    training, product = measured["training"], measured["product_gflops"]["median"]
    rate = training["gflop"] / (1e-3 * training["milliseconds"]["median"])
    assert training["fraction"]["median"] == pytest.approx(rate / product, rel=1e-6)
    assert training["cpu_fraction"]["median"] > 0


def test_exponents_of_the_operation_counts() -> None:
    """O(n) and O(n^2), from the modules themselves."""
    sizes = (400, 1600, 6400)
    assert exponent({n: macs("multirn", n) for n in sizes}) == pytest.approx(1, abs=0.01)
    assert exponent({n: macs("rn", n) for n in sizes}) == pytest.approx(2, abs=0.01)
    assert exponent({25: 1.0, 400: 2.0}) is None


def test_memory_of_a_relation_is_measured_above_the_idle_process() -> None:
    few, many = (peak_memory("relation", "multirn", objects) for objects in ("100", "25600"))
    if few is None or many is None:
        pytest.skip("peak memory is read from /proc, which Linux has")
    # At least the 25,600 objects' base and its gradient exist; at most a few dozen floats for each of their channels.
    assert 2 * 25_600 * 256 * 4 < many < 40 * 25_600 * 256 * 4
    assert few < many / 5


def test_the_plot_has_both_models(tmp_path: Path) -> None:
    found = {
        kind: {
            "seconds": {400: 1.0, 1600: 4.0},
            "bytes": {400: 10, 1600: 40},
            "macs": {400: 1, 1600: 4, 6400: 16},
            "exponent": 1.0,
        }
        for kind in ("multirn", "rn")
    }
    draw(json.loads(json.dumps(found)), tmp_path / "scaling.svg")
    assert "multiRN" in (tmp_path / "scaling.svg").read_text()


def test_relation_jobs_agree_with_their_operation_counts() -> None:
    """The hot loop's share: as many rows go through g's second layer as there are objects, or pairs."""
    shapes = {}
    for kind in ("multirn", "rn"):
        with torch.profiler.profile(record_shapes=True) as profile:
            relation(kind, 16)()
        (shapes[kind],) = (event.input_shapes for event in profile.events() if event.name == "bcn::pooled_sum")
    assert shapes["multirn"][:2] == [[1, 16, 256], [1, 256]]
    assert shapes["rn"][:2] == [[1, 16, 256], [16, 256]]


def test_the_hours_of_a_recipe_are_its_steps_and_its_operations() -> None:
    found = hours(find_recipe("table3/multirn", "paper"))
    assert found["steps"] == 50 * (9800 // 8)
    assert found["hours"] == pytest.approx(found["step_seconds"] * found["steps"] / 3600)
    question = 11 * 256 + 25 * 256 * 256 + 2 * 256 * 256 + 256 * 10
    cnn = 38 * 38 * 27 * 24 + (19 * 19 + 100 + 25) * 216 * 24
    of_image = cnn + 25 * (24 * 128 + 128 * 128 + 128 * 256) + 25 * 24 * 256 + 256 * 256
    operations = 6 * 8 * (of_image + 20 * question) * found["steps"]
    assert found["gpu_hours"] == pytest.approx(operations / GPU_FLOPS / 3600, rel=0.01)


def test_an_image_costs_what_its_parts_cost() -> None:
    found = bench_render(images=1, say=lambda _: None)
    *parts, together = (cost["median"] for cost in found["milliseconds of CPU"].values())
    assert len(parts) == 4
    assert min(parts) > 0
    assert together == pytest.approx(sum(parts))
    assert found["CPU minutes for 10,000 images"] == pytest.approx(together / 6)


def test_baselines_are_measured_beside_multirn() -> None:
    found = bench_baselines(rounds=1, seconds=0, say=lambda _: None)
    assert set(found) == {name.split("/")[1] for name in list_models("sort-of-clevr/")} - {"rn-original", "rn-h"}
    for kind in ("training", "inference"):
        assert found["multirn"][kind]["times multirn"]["median"] == 1
        own = {row: found[row][kind]["milliseconds"]["median"] for row in ("rn", "multirn")}
        ratio = found["rn"][kind]["times multirn"]["median"]
        assert ratio == pytest.approx(own["rn"] / own["multirn"])


def test_the_page_of_baselines_keeps_training_and_inference_apart() -> None:
    """A record's keys come back in the order of the alphabet."""
    ranges = [{"median": value, "low": value, "high": value} for value in (1.0, 2.0, 3.0, 4.0)]
    row = {
        "inference": {"milliseconds": ranges[2], "times multirn": ranges[3]},
        "training": {"milliseconds": ranges[0], "times multirn": ranges[1]},
    }
    headings, _, line = baselines({"rn": row}).strip().splitlines()[-3:]
    assert headings == (
        "| model | training, CPU ms | training, times `multirn` | inference, CPU ms | inference, times `multirn` |"
    )
    assert [cell.split()[0] for cell in line.split("|")[2:-1]] == ["1.000", "2.00", "3.000", "4.00"]


def test_the_profile_names_every_section_of_both_forms(tmp_path: Path) -> None:
    found = bench_profile(rounds=1, seconds=0, say=lambda _: None)
    assert list(found["reference"]["sections"]) == ["CNN", "BCN and g", "f and loss", "Adam", "rest"]
    ours = found["ours"]["sections"]
    assert list(ours)[:4] == ["CNN", "BCN", "g, first layer", "g, second layer and sum"]
    assert all(cost >= 0 for form in found.values() for cost in form["sections"].values())
    draw_profile(found, tmp_path / "profile.svg")
    assert "second layer" in (tmp_path / "profile.svg").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_bench_checks_its_output_before_it_measures(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("kept")
    for out in (tmp_path, tmp_path / "file" / "record.json"):
        assert exit_code("bench", name, "--out", out) == 2
        said = capfd.readouterr().err
        assert said.startswith(f"bcn: cannot write {out}: ")
        assert said.count("\n") == 1
    assert (tmp_path / "file").read_text() == "kept"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
