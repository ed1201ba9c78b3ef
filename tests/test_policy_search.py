"""Search on a policy: legal everywhere, led by its view and its seeds alone, and it weighs deals as it says it does."""

import itertools
import math
import random

import numpy as np
import pytest
import torch
from helpers import VARIANTS, choose_sensibly, exchange_hidden, name_rules, play_some, play_states

import agents
from agents.arena.scenarios import ask, read_scenarios
from agents.encoding import encode_views
from agents.equity import EQUITY_FILE, new_equity, write_equity
from agents.policy import PolicyAgent, PolicySpec, write_policy
from agents.search import budget, policy_search
from agents.search.belief import count_effective, draw_hands, judge_hands, sample_likely_worlds, temper
from agents.search.objective import find_margins, value_hands
from agents.search.playout import derive_streams, play_out
from agents.search.policy_search import PolicySearchAgent, score_actions
from agents.search.worlds import sample_worlds
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, cards_of, mask_of, parse_action, parse_card
from pitch_env.engine import apply, legal_mask, new_tables, set_hand
from pitch_env.table import HAND_OVER, MATCH_OVER, deck_mask, read_rules
from pitch_env.view import view_table

TINY = Rules(num_players=3, num_suits=2, num_ranks=5, hand_size=2)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # batches are small
    yield
    torch.set_num_threads(before)


def new_policy(rules, sharpness=1.0, seed=0):
    """An untrained policy; the sharper, the further from uniform."""
    torch.manual_seed(seed)
    spec = PolicySpec(rules, (16, 16), rules.num_players)
    network = spec.new_network().eval()
    with torch.no_grad():
        network.head.weight *= 100 * sharpness
    return PolicyAgent(spec, network)


def new_random_equity(rules):
    """An equity of no sense, but one that tells scores apart."""
    generator, equity = torch.Generator().manual_seed(1), new_equity(rules).eval()
    for tensor in equity.state_dict().values():
        tensor.copy_(torch.rand(tensor.shape, generator=generator) - 0.5)
    return equity


def new_agent(rules, **changes):
    return PolicySearchAgent(new_policy(rules), **{"num_worlds": 6, "num_candidates": 8, **changes})


def new_kind(rules, kind, monkeypatch):
    """An agent that plays for points, for the match, or by a clock that goes on a second at each look."""
    if kind == "time":
        clock = itertools.count()
        for module in (policy_search, budget):
            monkeypatch.setattr(module, "perf_counter", clock.__next__)
        return new_agent(rules, seconds=9.0)
    return new_agent(rules, equity=new_random_equity(rules) if kind == "match" else None)


def look(table):
    return view_table(table, int(table["seat"][0]))


def act(agent, table, seed=0):
    return int(agent.act(look(table), np.array([seed], np.uint64))[0])


def set_table(hands, said, **changes):
    rules = Rules(num_players=len(hands), hand_size=len(hands[0].split()), **changes)
    table = new_tables(rules, 1)
    set_hand(table, [mask_of(parse_card(word) for word in hand.split()) for hand in hands], dealer=len(hands) - 1)
    for word in said.split():
        apply(table, parse_action(word))
    return table


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_every_action_is_legal(rules):
    agent, table = new_agent(rules, equity=new_random_equity(rules)), new_tables(rules, 4)
    for _ in range(rules.num_players * (rules.hand_size + 1)):
        if table["phase"][0] in (HAND_OVER, MATCH_OVER):
            break
        action = act(agent, table)
        assert legal_mask(table) >> action & 1
        apply(table, action)


@pytest.mark.parametrize("kind", ["points", "match", "time"])
@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True), Rules(num_players=6)], ids=name_rules)
def test_what_others_hold_changes_nothing(rules, kind, monkeypatch):
    rng, agent = random.Random(3), new_kind(rules, kind, monkeypatch)
    for step, table in enumerate(play_states(rules, seed=6, num_hands=1, choose=choose_sensibly)):
        if table["seat"][0] >= 0 and step % 3 == 0:
            other = exchange_hidden(table, int(table["seat"][0]), rng)
            assert act(agent, table, 5) == act(agent, other, 5)


@pytest.mark.parametrize("kind", ["points", "match", "time"])
def test_a_batch_gives_what_each_view_gives_alone_and_seeds_matter(kind, monkeypatch):
    agent = new_kind(Rules(), kind, monkeypatch)
    tables = [play_some(Rules(), number, seed=number) for number in range(0, 40, 2)]
    seeds = np.arange(len(tables), dtype=np.uint64)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    views = np.concatenate([look(table) for table in tables])
    actions = agent.act(views, seeds)
    assert actions.dtype == np.int64
    assert actions.tolist() == [act(agent, table, seed) for seed, table in enumerate(tables)]
    assert before == (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    assert len({tuple(agent.act(views, seeds + np.uint64(more)).tolist()) for more in range(5)}) > 1


def judge_by_hand(policy, table, seat, held, said, noise):
    """Likelihood of what a seat said so far, holding some cards, by the agent's own view of each decision."""
    again, chance = table.copy(), 1.0
    set_hand(again, [held if other == seat else int(cards) for other, cards in enumerate(table["dealt"][0, :3])])
    for word in said.split():
        action, legal = parse_action(word), legal_mask(again)
        if again["seat"][0] == seat and legal & (legal - 1):
            encoded = encode_views(look(again), policy.spec.num_seats)
            with torch.inference_mode():
                logits = policy.network(encoded.features, encoded.lengths)[0].numpy()
            mask, order = int(encoded.masks[0]), encoded.orders[0]
            shares = {index: math.exp(logits[index]) for index in range(57) if mask >> index & 1}
            card = action - CARD_ACTION
            framed = action if card < 0 else CARD_ACTION + int(order[card // 13]) * 13 + card % 13
            chance *= (1 - noise) * shares[framed] / sum(shares.values()) + noise / len(shares)
        apply(again, action)
    return chance


def find_tiny_position():
    """A position of a tiny game with a seat's view of it, and what was said."""
    said = "1 2 pass AD TD"
    return set_table(["JC KD", "AD JD", "TD QD"], said, num_suits=2, num_ranks=5), said


def test_hands_are_weighed_by_what_their_owners_did():
    policy, noise = new_policy(TINY, 2.0), 0.1
    table, said = find_tiny_position()
    view = look(table)
    assert view["viewer"][0] == 0
    hands = draw_hands(view, 200, np.array([4], np.uint64))
    found = judge_hands(view, hands, policy.network, policy.spec.num_seats, noise)
    assert (found[..., 0] == 0).all()
    seen = {1: set(), 2: set()}
    for number in range(200):
        for seat in (1, 2):
            held = int(hands[0, number, seat])
            if held not in seen[seat]:
                seen[seat].add(held)
                expected = math.log(judge_by_hand(policy, table, seat, held, said, noise))
                assert found[0, number, seat] == pytest.approx(expected, abs=1e-5)
    known = int(table["played"][0] | table["dealt"][0, 0])
    unseen = [card for card in cards_of(deck_mask(TINY)) if not known >> card & 1]
    assert seen[1] == {1 << parse_card("AD") | 1 << card for card in unseen}


def test_deals_are_as_likely_as_their_owners_make_them():
    policy, noise = new_policy(TINY, 4.0), 0.05
    table, said = find_tiny_position()
    view, seed = look(table), np.array([7], np.uint64)
    hands = draw_hands(view, 400, seed)
    found = judge_hands(view, hands, policy.network, policy.spec.num_seats, noise)
    weights = temper(np.ascontiguousarray(found.transpose(0, 2, 1)), 0)
    worlds = sample_likely_worlds(view, 6000, seed, hands, weights)[0]
    pools = [{int(cards) for cards in hands[0, :, seat]} for seat in (1, 2)]
    chances = {
        (one, other): judge_by_hand(policy, table, 1, one, said, noise)
        * judge_by_hand(policy, table, 2, other, said, noise)
        for one, other in itertools.product(*pools)
        if not one & other
    }
    total = sum(chances.values())
    for pair, chance in chances.items():
        share = ((worlds["dealt"][:, 1] == pair[0]) & (worlds["dealt"][:, 2] == pair[1])).mean()
        assert share == pytest.approx(chance / total, abs=0.04)
    assert max(chances.values()) > 1.5 * total / len(chances)  # else the test would say little
    assert (worlds["dealt"][:, 0] == table["dealt"][0, 0]).all()


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_sampled_worlds_give_the_view_back(rules):
    agent, table = new_agent(rules), play_some(rules, 11, seed=3)
    view = look(table)
    worlds = agent.sample(view, np.array([2], np.uint64), 10)[0]
    for world in np.split(worlds, len(worlds)):
        again = view_table(world, int(view["viewer"][0]))
        assert (again["dealt"] == view["dealt"]).all()
        dealt = [int(cards) for cards in world["dealt"][0, : rules.num_players]]
        assert sum(cards.bit_count() for cards in dealt) == rules.hand_size * rules.num_players
        assert len(cards_of(np.bitwise_or.reduce(dealt))) == rules.hand_size * rules.num_players


def test_tempering_keeps_the_effective_sample_size():
    log_weights = np.array([np.zeros(40), -np.arange(40.0), np.linspace(0, -0.1, 40)])
    weights = temper(log_weights, 10)
    assert weights.sum(axis=1) == pytest.approx(np.ones(3))
    assert count_effective(weights)[:, 0] == pytest.approx([40, 10, 40], abs=0.2)
    assert weights[2] == pytest.approx(np.exp(log_weights[2]) / np.exp(log_weights[2]).sum())  # untouched
    assert (np.diff(weights[1]) < 0).all()


def test_playing_out_meets_the_same_luck():
    policy, fresh = new_policy(Rules()), new_tables(Rules(), 1)
    streams = derive_streams(np.array([3], np.uint64), 50)[0]

    def play(is_greedy=False):
        tables = np.repeat(fresh, 50)
        play_out(tables, streams, policy.network, 4, is_greedy=is_greedy)
        assert np.isin(tables["phase"], (HAND_OVER, MATCH_OVER)).all()
        return [table["plays"].tobytes() for table in tables]

    plays = play()
    assert plays == play()
    assert len(set(plays)) > 2
    assert len(set(play(is_greedy=True))) == 1


def test_hands_are_worth_points_or_the_chance_to_win_the_match():
    equity, tables = new_random_equity(Rules()), np.repeat(new_tables(Rules(), 1), 3)
    play_out(tables, derive_streams(np.array([3], np.uint64), 3)[0], new_policy(Rules()).network, 4)
    tables["phase"], tables["winner"] = [HAND_OVER, MATCH_OVER, MATCH_OVER], [-1, 2, 3]
    sides = np.array([1, 2, 2])
    assert value_hands(tables, sides, 4, equity).tolist() == [equity.estimate_after(tables[:1])[0, 1], 1, 0]
    deltas = tables["deltas"][:, :4].astype(float)
    margins = [deltas[number, side] - np.delete(deltas[number], side).mean() for number, side in enumerate(sides)]
    assert value_hands(tables, sides, 4, None) == pytest.approx(margins)
    assert find_margins(tables, 2, 4)[1:] == pytest.approx(margins[1:])


def test_a_contract_is_taken_from_a_side_that_would_win_the_match_with_it():
    rules = Rules(num_players=2)
    table = set_table(["2C 3C 4D 5D 6H 7H", "AS KS JS 2S 9D TD"], "")
    table["scores"][0, 1] = 6
    agent = PolicySearchAgent(new_policy(rules, 0), 256, 64, is_greedy=False)  # all play at random
    assert act(agent, table) == 0
    equity = new_equity(rules).eval()  # all are equal until one has won
    agent = PolicySearchAgent(agent.policy, 256, 64, equity=equity, is_greedy=False)
    assert act(agent, table) == 4


def test_worlds_are_added_until_the_time_is_up(monkeypatch):
    agent, view, clock = new_agent(Rules(), num_candidates=128), look(play_some(Rules(), 3, seed=1)), [0.0]
    monkeypatch.setattr(budget, "perf_counter", lambda: clock[0])
    seeds, found = np.array([2], np.uint64), {}
    for end in (0.001, 1.0, 2.0):
        clock[0], found[end] = 0.0, []
        for worlds, streams in agent._draw_timed(view, seeds, end):
            assert worlds.shape == streams.shape
            found[end].append(worlds[0])
            clock[0] += 0.001 * worlds.shape[1]
        assert end == 0.001 or 0.9 * end < clock[0] <= end
    assert [len(worlds) for worlds in found[0.001]] == [32]
    assert [len(worlds) for worlds in found[2.0][:5]] == [32, 32, 64, 128, 256]
    deals = {tuple(world["dealt"].tolist()) for worlds in found[2.0] for world in worlds}
    assert len(deals) > 1000
    assert all((one == other).all() for one, other in zip(found[1.0][:4], found[2.0], strict=False))


def test_the_step_weighs_values_by_their_error():
    priors = np.log([0.6, 0.3, 0.1])
    better = np.array([[0], [1], [0]])
    noise = np.random.default_rng(0).normal(size=(3, 400))
    assert np.argmax(score_actions(priors, noise, 1.0)) == 0
    assert np.argmax(score_actions(priors, noise + better, 1.0)) == 1
    assert np.argmax(score_actions(priors, noise + better, 0.0)) == 0
    assert score_actions(priors, np.zeros((3, 5)), 1.0) == pytest.approx(priors)


def test_what_is_clearly_better_is_played_though_the_policy_does_not_know():
    table = set_table(["KS 3H", "AS 2H", "9S JS"], "2 pass pass KS AS")
    for seed in range(4):
        agent = PolicySearchAgent(new_policy(read_rules(table[0]), seed=seed), 64, 64)
        assert act(agent, table, seed) == CARD_ACTION + parse_card("9S")  # the jack is not thrown under the ace
    hands = ["AS KS QS JS TS 2S", "5S 6S 7C 9D 9H TH", "3D 4D 5D 6D 7D 8D", "3H 4H 5H 6H 7H 8H"]
    agent = PolicySearchAgent(new_policy(Rules(), 0), 256, 64, is_greedy=False)  # all play at random
    assert act(agent, set_table(hands, "")) >= 2
    assert act(agent, set_table(hands, "3")) == 0


def test_without_strength_it_does_what_the_policy_does():
    policy = new_policy(Rules())
    agent = PolicySearchAgent(policy, 4, 4, strength=0)
    tables = [play_some(Rules(), number, seed=number) for number in range(0, 40, 3)]
    views, seeds = np.concatenate([look(table) for table in tables]), np.zeros(len(tables), np.uint64)
    assert agent.act(views, seeds).tolist() == policy.act(views, seeds).tolist()


def test_it_is_loaded_by_the_name_of_its_policy(tmp_path):
    policy = new_policy(Rules())
    write_policy(tmp_path / "mine.safetensors", policy.spec, policy.network.state_dict())
    agent = agents.load(f"search:{tmp_path / 'mine.safetensors'}", Rules())
    assert (agent.name, agent.policy.name) == ("search:mine", "mine")
    assert (agent.num_worlds, agent.seconds, agent.equity) == (128, None, None)
    agent = agents.load(f"search:{tmp_path / 'mine.safetensors'}?worlds=8,seconds=0.5")
    assert (agent.name, agent.num_worlds, agent.seconds) == ("search:mine?worlds=8,seconds=0.5", 8, 0.5)
    with pytest.raises(ValueError, match="search starts from a trained policy, not from 'random'"):
        agents.load("search:random")
    with pytest.raises(ValueError, match="trained for other rules"):
        agents.load(f"search:{tmp_path / 'mine.safetensors'}", Rules(target=11))
    with pytest.raises(ValueError, match="trained for other rules"):
        act(agent, new_tables(Rules(target=11), 1))


def test_it_plays_for_the_match_where_an_equity_lies_beside_the_policy(tmp_path):
    policy, equity = new_policy(Rules()), new_random_equity(Rules())
    write_policy(tmp_path / "policy.safetensors", policy.spec, policy.network.state_dict())
    with pytest.raises(FileNotFoundError, match="no equity file"):
        agents.load(f"search:{tmp_path}?objective=match")
    write_equity(tmp_path / EQUITY_FILE, equity)
    for name in (
        f"search:{tmp_path}",
        f"search:{tmp_path / 'policy.safetensors'}",
        f"search:{tmp_path}?objective=match",
    ):
        found = agents.load(name).equity
        assert found.state_dict().keys() == equity.state_dict().keys()
        assert all((found.state_dict()[key] == tensor).all() for key, tensor in equity.state_dict().items())
    assert agents.load(f"search:{tmp_path}?objective=points").equity is None
    write_equity(tmp_path / EQUITY_FILE, new_equity(Rules(target=11)))
    with pytest.raises(ValueError, match="trained for other rules: target"):
        agents.load(f"search:{tmp_path}")


def test_it_plays_its_policys_rules_alone_and_scenarios_under_others_are_left_out():
    scenarios = read_scenarios()
    own = [scenario for scenario in scenarios if scenario.rules == Rules(num_players=5)]
    agent = new_agent(Rules(num_players=5, max_hands=9), num_worlds=2)
    assert agent.rules == agent.policy.rules == agent.policy.spec.rules
    outcome = ask(agent, scenarios)
    assert [answer.scenario for answer in outcome.answers] == [scenario.name for scenario in own]
    assert outcome.skipped == len(scenarios) - len(own) > 0 < len(own)
    assert outcome.judged_by == "the most frequent of 8 answers"


@pytest.mark.parametrize("option", ["worlds=many", "seconds=", "objective=fun", "world=8", "worlds=8,"])
def test_options_that_are_not_known_are_told(option, tmp_path):
    policy = new_policy(TINY)
    write_policy(tmp_path / "mine.safetensors", policy.spec, policy.network.state_dict())
    with pytest.raises(
        ValueError, match=r"search takes worlds=WHOLE NUMBER, seconds=NUMBER, objective=points\|match, not"
    ):
        agents.load(f"search:{tmp_path / 'mine.safetensors'}?{option}")


def test_misuse_is_told():
    policy = new_policy(TINY)
    for changes, message in (
        ({"num_worlds": 1}, "num_worlds takes a whole number from 2 up"),
        ({"num_candidates": 2.5}, "num_candidates takes"),
        ({"noise": 1}, "noise takes a share from 0 to below 1"),
        ({"strength": math.nan}, "strength takes a number from 0 up"),
        ({"seconds": 0}, "seconds takes a number above 0"),
        ({"seconds": math.inf}, "seconds takes a number above 0"),
        ({"equity": new_equity(Rules())}, "the equity was trained for other rules"),
    ):
        with pytest.raises(ValueError, match=message):
            PolicySearchAgent(policy, **changes)


def test_uniform_worlds_are_what_it_starts_from_where_nothing_was_said():
    agent, table = new_agent(TINY, num_candidates=300), new_tables(TINY, 5)
    view, seed = look(table), np.array([1], np.uint64)
    likely, plain = agent.sample(view, seed, 900)[0], sample_worlds(view, 900, seed)
    for seat in range(3):
        for card in range(52):
            shares = [(worlds["dealt"][:, seat] >> np.uint64(card) & np.uint64(1)).mean() for worlds in (likely, plain)]
            assert shares[0] == pytest.approx(shares[1], abs=0.1)
