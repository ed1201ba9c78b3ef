"""Every kind of corruption of a game record is found, with its place and its reason."""

import copy

import pytest
from test_record import find_error, play_env, play_worked

from pitch_env import Rules
from pitch_env.record import RecordError, replay_record

RECORD = play_env(Rules(target=20), seed=5, num_actions=56)  # the third hand is dealt
WON = play_env(Rules(target=1, teams=True), seed=5)


def test_the_records_to_be_corrupted():
    replay_record(RECORD)
    replay_record(WON)
    assert len(RECORD["hands"]) == 3
    assert RECORD["hands"][-1]["scores"] is None
    assert WON["winner"] in (0, 1)


def walk(value, place=()):
    """Every place in nested lists and dicts."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*place, key)
            yield from walk(value[key], (*place, key))


def put(record, place, change):
    changed = copy.deepcopy(record)
    change(get(changed, place[:-1]), place[-1])
    return changed


def delete(inner, key):
    del inner[key]


def replacements(value):
    """Other values in the place of one."""
    yield from (None, [], {}, "?", [[]], {"x": 1}, -1, 99, 2**80, 1.5)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, float(value), str(value), value == 1)
    elif isinstance(value, str):
        yield from (value.lower() + " ", "AS", "2C", "S", "C", value * 2)
    elif isinstance(value, list):
        yield from (value + value[:1], value[1:], value[::-1], dict(enumerate(value)))


def may_be_right(record, place, old, new):
    """Changes that break nothing: the order and spelling of dealt cards, other cards before the first is played."""
    if place[0] == "rules":
        return True
    if "deal" in place and not record["hands"][place[1]]["tricks"]:
        return True
    if "deal" in place and isinstance(old, list):
        return isinstance(new, list) and sorted(map(str, new)) == sorted(map(str, old))
    return "deal" in place and isinstance(new, str) and new.strip().upper() == old


def cuts_short(record, place):
    """Without the last of what is in progress a record is shorter, and right."""
    return place[:2] == ("hands", len(record["hands"]) - 1) and place[-1] == -1 + len(get(record, place[:-1]))


def get(record, place):
    for key in place:
        record = record[key]
    return record


@pytest.mark.parametrize("record", [RECORD, WON], ids=["in progress", "won"])
def test_every_part_changed_or_left_out_is_noticed(record):
    for place in walk(record):
        inner = get(record, place)
        if place[0] != "rules" and not cuts_short(record, place):
            assert find_error(put(record, place, delete)), place
        for new in replacements(inner):
            if (type(new) is type(inner) and new == inner) or may_be_right(record, place, inner, new):
                continue
            corrupt = put(record, place, lambda at, key, new=new: at.__setitem__(key, new))
            text = find_error(corrupt)
            if place[0] == "hands" and len(place) > 2:
                assert text.startswith("hand "), (place, new)


@pytest.mark.parametrize("name", Rules().to_dict())
def test_every_rule_is_read(name):
    for new in (None, [], {}, "?", -1, 2**80, 1.5):
        corrupt = put(RECORD, ("rules", name), lambda at, key, new=new: at.__setitem__(key, new))
        assert find_error(corrupt).startswith(f"rules: Rules.{name} takes")


def other_record(change):
    record = copy.deepcopy(play_worked("lone trump"))
    change(record, record["hands"][0])
    return record


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda _, h: h["bids"].__setitem__(1, [1, 2]), r"hand 1, bid of seat 1: .*\(R5\)"),
        (lambda _, h: h["bids"].__setitem__(0, [0, 0]), r"hand 1, bid of seat 3: .*\(R6\)"),
        (lambda _, h: h["bids"].__setitem__(3, [3, 1]), r"hand 1, bid of seat 3: .*\(R7\)"),
        (lambda _, h: h["bids"].__setitem__(1, [2, 0]), "hand 1, bid of seat 2: it is the turn of seat 1"),
        (lambda _, h: h["bids"].__setitem__(1, [1, 9]), "hand 1, bid of seat 1: a bid is a number from 0 to 4, not 9"),
        (lambda _, h: h["bids"].__setitem__(1, [1, 4]), r"hand 1, bid of seat 2: it is the turn of seat 1"),
        (lambda _, h: h["bids"].append([0, 4]), r"hand 1, bid of seat 0: .*auction is over"),
        (lambda _, h: h["bids"].__setitem__(1, [1, 0, 0]), "hand 1: not of the form"),
        (lambda _, h: h["bids"].__setitem__(1, 1), "hand 1: not of the form"),
        (lambda _, h: h["bids"].__setitem__(1, [True, 0]), "hand 1: bids is"),
        (lambda _, h: h["tricks"][1]["cards"].__setitem__(1, "7H"), r"hand 1, trick 2, seat 1 plays 7H: .*not hold"),
        (lambda _, h: h["tricks"][1]["cards"].__setitem__(1, "AD"), r"hand 1, trick 2, seat 1 plays AD: .*\(R11\)"),
        (
            lambda _, h: h["tricks"][1]["cards"].__setitem__(1, "1D"),
            "hand 1, trick 2, seat 1 plays 1D: '1D' is no",
        ),
        (lambda _, h: h["tricks"][1].update(winner=0), "hand 1: tricks is"),
        (lambda _, h: h["tricks"][1].update(leader=1), "hand 1, trick 2, seat 1 plays 6C: it is the turn of seat 0"),
        (lambda _, h: h["tricks"][0].update(leader=0.0), "hand 1: tricks is"),
        (lambda _, h: h["tricks"].reverse(), "hand 1, trick 1, seat 1 plays 8C: it is the turn of seat 0"),
        (
            lambda _, h: h["tricks"].append(h["tricks"][0]),
            "hand 1, trick 7, seat 0 plays 5S: the hand is over",
        ),
        (lambda _, h: h.update(trump="C"), "hand 1: trump is 'C', but by the play it is 'S'"),
        (lambda _, h: h.update(pitcher=1), "hand 1: pitcher is 1, but by the play it is 0"),
        (lambda _, h: h.update(bid=3), "hand 1: bid is 3, but by the play it is 2"),
        (lambda _, h: h["points"].update(jack=0), "hand 1: points is"),
        (lambda _, h: h.update(scores=[2, 0, 0, 2]), "hand 1: scores is"),
        (lambda _, h: h.update(scores=[2, False, 0, 1]), "hand 1: scores is"),
        (lambda _, h: h.update(dealer=4), "hand 1: dealer is a seat from 0 to 3, not 4"),
        (lambda _, h: h.update(dealer=2), "hand 1, bid of seat 0: it is the turn of seat 3"),
        (lambda r, _: r["hands"][1].update(dealer=3), r"hand 2: dealer is 3, but by the play it is 0 \(R3\)"),
        (lambda _, h: h["deal"][0].__setitem__(0, "KC"), r"hand 1: the deal is 4 hands of 6 different cards .*\(R2\)"),
        (lambda _, h: h["deal"].pop(), r"hand 1: the deal is 4 hands of 6 different cards"),
        (lambda _, h: h["deal"][0].__setitem__(0, "XX"), "hand 1: 'XX' is no card"),
        (lambda _, h: h.update(note="x"), "hand 1: a hand has exactly dealer, deal, bids"),
        (lambda r, _: r["hands"].insert(0, r["hands"][1]), "hand 2: the hand before it is not finished"),
        (lambda r, _: r["hands"].__setitem__(1, "x"), "hand 2: a hand has exactly"),
        (lambda r, _: r.update(winner=0), "the record: winner is 0, but by the play it is None"),
        (lambda r, _: r.update(version=2), "a record of version 2; version 1 is read here"),
        (lambda r, _: r.update(version=True), "a record of version True; version 1 is read here"),
        (lambda r, _: r["rules"].update(colour="red"), "rules: Rules has no field 'colour'"),
        (lambda r, _: r["rules"].update(teams=1), r"rules: Rules\.teams takes True or False"),
        (lambda r, _: r.update(rules=[]), "rules: "),
        (lambda r, _: r.update(hands=[]), "hands is a list of at least one hand"),
        (lambda r, _: r.update(start_scores=[1, 2]), "start_scores is a list of 4 whole numbers"),
        (lambda r, _: r.update(start_scores=[1, 2, 3, "4"]), "start_scores is a list of 4 whole numbers"),
        (lambda r, _: r.update(start_scores=[10**6, 0, 0, 0]), "start_scores is a list of 4 whole numbers"),
        (lambda r, _: r.pop("winner"), "a game record is a JSON object with version, rules, hands and winner"),
    ],
)
def test_corruptions_are_named_with_their_place_and_reason(change, text):
    with pytest.raises(RecordError, match=text):
        replay_record(other_record(change))


def test_swapped_cards():
    def swap(_, hand):
        hand["deal"][0][0], hand["deal"][1][0] = hand["deal"][1][0], hand["deal"][0][0]

    assert find_error(other_record(swap)).startswith("hand 1, trick 2, seat 0 plays 6C: action")


def test_hands_after_the_end_of_the_match():
    record = play_worked("game tie", scores=[5, 0, 0, 0])
    record["hands"].append(play_worked("game tie")["hands"][1])
    assert find_error(record) == "hand 2: the match was over before it (R19)"
    cut = play_env(Rules(max_hands=1))
    cut["hands"] *= 2
    assert find_error(cut) == "hand 2: the match was over before it (R19)"
