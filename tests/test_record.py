"""Game records: written, read, replayed, and every kind of corruption found with its place and reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import VARIANTS, WORKED, actions_of, name_rules, play_states

from pitch_env import Rules, pitch_v0
from pitch_env.cards import CARD_ACTION, parse_action
from pitch_env.engine import legal_mask
from pitch_env.record import HAND_KEYS, RecordError, main, read_record, record_hand, record_match, replay_record
from pitch_env.record import write_record as write
from pitch_env.table import AUCTION, MATCH_OVER

ROOT = Path(__file__).parents[1]


def play_env(rules=None, seed=1, num_actions=10_000, **options):
    """The record of a match in which the first legal card is played and bids are low."""
    env = pitch_v0.raw_env(rules)
    env.reset(seed=seed, options=options)
    for number in range(num_actions):
        if any(env.terminations.values()) or any(env.truncations.values()):
            break
        legal = actions_of(legal_mask(env.table))
        env.step(legal[number % min(len(legal), 2)])
    return env.record()


def play_worked(name, **options):
    hand = WORKED[name]
    env = pitch_v0.raw_env()
    env.reset(seed=0, options={"dealer": hand["dealer"], "deal": hand["deal"], **options})
    for word in ["2", "pass", "pass", "pass", *(card for trick in hand["tricks"] for card in trick["cards"])]:
        env.step(parse_action(word))
    return env.record()


def find_error(record):
    with pytest.raises(RecordError) as caught:
        replay_record(record)
    return str(caught.value)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_there_and_back(rules, tmp_path):
    record = play_env(rules, seed=2, num_actions=300)
    assert json.loads(json.dumps(record)) == record
    write(record, tmp_path / "match.json")
    assert read_record(tmp_path / "match.json") == record
    hands = replay_record(record)
    assert record_match(hands, [0] * rules.num_sides) == record
    assert len((tmp_path / "match.json").read_text("utf-8").splitlines()) == len(record["hands"]) + 2


def test_worked_hands():
    for name, hand in WORKED.items():
        record = play_worked(name)
        first, second = record["hands"]
        assert (first["dealer"], first["deal"], first["pitcher"], first["bid"]) == (3, hand["deal"], 0, 2)
        assert [trick["leader"] for trick in first["tricks"]] == [trick["leader"] for trick in hand["tricks"]]
        assert [list(first["points"].values()).count(seat) for seat in range(4)] == hand["points_per_seat"]
        assert (second["dealer"], second["bids"], second["scores"]) == (0, [], None)
        replay_record(record)


def test_a_record_in_full():
    first = play_worked("lone trump")["hands"][0]
    assert first == {
        "dealer": 3,
        "deal": WORKED["lone trump"]["deal"],
        "bids": [[0, 2], [1, 0], [2, 0], [3, 0]],
        "pitcher": 0,
        "bid": 2,
        "trump": "S",
        "tricks": [
            {"leader": 0, "cards": ["5S", "7H", "QH", "9C"], "winner": 0},
            {"leader": 0, "cards": ["6C", "KC", "2C", "AC"], "winner": 3},
            {"leader": 3, "cards": ["KH", "3C", "5C", "TH"], "winner": 3},
            {"leader": 3, "cards": ["3D", "7D", "AD", "3H"], "winner": 1},
            {"leader": 1, "cards": ["JC", "AH", "7C", "5D"], "winner": 1},
            {"leader": 1, "cards": ["8C", "9H", "4H", "4D"], "winner": 1},
        ],
        "points": {"high": 0, "low": 0, "jack": None, "game": 3},
        "scores": [2, 0, 0, 1],
    }


@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True, pitch_by_card=True)], ids=name_rules)
def test_what_is_not_yet_known_is_empty(rules):
    for table in play_states(rules, seed=4):
        hand = record_hand(table)
        t = table[0]
        assert (hand["pitcher"] is None) == (hand["bid"] is None) == (t["phase"] == AUCTION)
        assert (hand["trump"] is None) == (t["num_plays"] == 0) == (hand["tricks"] == [])
        is_over = t["num_plays"] == 24
        assert (hand["points"] is not None) == (hand["scores"] is not None) == is_over
        if hand["tricks"]:
            assert (hand["tricks"][-1]["winner"] is None) == (len(hand["tricks"][-1]["cards"]) < 4)
        if t["num_hands"] == is_over:
            replay_record(record_match([table], [0] * rules.num_sides))


def test_a_pitch_by_card_is_a_bid_of_four_and_the_lead():
    env = pitch_v0.raw_env(Rules(pitch_by_card=True))
    env.reset(seed=1)
    env.step(0)
    card = actions_of(legal_mask(env.table))[-1]
    seat = int(env.table["seat"][0])
    env.step(card)
    hand = env.record()["hands"][0]
    assert hand["bids"][-1] == [seat, 4]
    assert (hand["pitcher"], hand["bid"], len(hand["tricks"][0]["cards"])) == (seat, 4, 1)
    assert card >= CARD_ACTION
    assert record_hand(replay_record(env.record())[0]) == hand


def test_start_scores():
    record = play_worked("game tie", scores=[5, -3, 0, 6])
    assert record["start_scores"] == [5, -3, 0, 6]
    assert record["hands"][0]["scores"] == [7, -3, 0, 6]
    assert record["winner"] == 0
    assert len(record["hands"]) == 1
    assert replay_record(record)[0]["phase"][0] == MATCH_OVER
    assert "start_scores" not in play_worked("game tie")
    del record["start_scores"]
    assert find_error(record).startswith("hand 1: scores is [7, -3, 0, 6], but by the play it is [2, 0, 0, 0]")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds no JSON"),
        ("{", "holds no JSON"),
        ("[1, 2", "holds no JSON"),
        ("[" * 100_000, "holds no JSON"),
        (b"\xff\xfe\x00", "holds no JSON"),
        ("[]", "a game record is a JSON object"),
        ("null", "a game record is a JSON object"),
        ('{"version": 1}', "a game record is a JSON object"),
        ('{"version": "1", "rules": {}, "hands": [], "winner": null}', "a record of version '1'"),
        ('{"version": 1, "rules": {}, "hands": {}, "winner": null}', "hands is a list"),
    ],
    ids=range(10),
)
def test_files_that_hold_no_record(text, reason, tmp_path, capsys):
    path = tmp_path / "junk.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RecordError, match=reason):
        read_record(path)
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: ")


def test_the_command_prints_a_match(tmp_path, capsys):
    write(play_worked("game tie", scores=[5, 0, 0, 0]), tmp_path / "match.json")
    assert main([str(tmp_path / "match.json")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("--- hand 1 ---\n")
    assert out.endswith("side 0 wins the match\n")
    write(play_worked("game tie"), tmp_path / "match.json")
    assert main([str(tmp_path / "match.json")]) == 0
    assert capsys.readouterr().out.endswith("no winner yet\n")


def test_the_command_prints_up_to_where_a_rule_is_broken(tmp_path, capsys):
    record = play_env(Rules(target=20), seed=5, num_actions=60)
    record["hands"][2]["bids"][0][1] = 7
    write(record, tmp_path / "match.json")
    assert main([str(tmp_path / "match.json")]) == 1
    out, err = capsys.readouterr()
    assert "--- hand 2 ---" in out
    assert "--- hand 3 ---" not in out
    assert "match.json: hand 3, bid of seat " in err
    assert main([str(tmp_path / "nothing.json")]) == 1
    assert "nothing.json" in capsys.readouterr().err


def test_the_command_itself(tmp_path):
    for winner, code in ((None, 0), (3, 1)):
        record = {**play_worked("lone jack"), "winner": winner}
        write(record, tmp_path / "match.json")
        command = [sys.executable, "-m", "pitch_env.record", str(tmp_path / "match.json")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == code
        assert "--- hand 1 ---" in done.stdout
        assert ("winner is 3, but by the play it is None" in done.stderr) == bool(code)
        assert "Traceback" not in done.stderr
    assert set(record["hands"][0]) == set(HAND_KEYS)
