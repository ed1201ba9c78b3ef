"""Exact measuring: counts, values and best responses against slow walks, OpenSpiel and play; and the trainer by it."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from helpers import actions_of
from referee import Referee

from agents import load
from agents.arena.__main__ import main
from agents.arena.courses import Tree
from agents.arena.exact import TINY, ask, measure, solve
from agents.arena.play import play_hands
from agents.encoding import choose_actions, encode_views
from agents.policy import PolicyAgent, PolicySpec, write_policy
from agents.training.config import Config
from agents.training.learner import Learner
from pitch_env import Rules
from pitch_env.cards import cards_of
from pitch_env.engine import legal_mask, new_tables
from pitch_env.observation import observe_compact
from pitch_env.table import deck_mask
from pitch_env.view import view_to_dict

ONE_CARD = Rules(num_players=2, num_suits=2, num_ranks=3, hand_size=1)
SMALLEST = Rules(num_players=2, num_suits=2, num_ranks=2, hand_size=1)
UNIFORM = 3.768889  # NashConv of uniform play at TINY


@pytest.fixture(scope="module")
def tree():
    return Tree(TINY)


def new_agent(rules=TINY, seed=0, is_greedy=False):
    """A network nobody trained, but for a head that makes it choose."""
    torch.manual_seed(seed)
    spec = PolicySpec(rules, (16, 16), rules.num_players)
    network = spec.new_network()
    torch.nn.init.normal_(network.head.weight, 0, 1)
    return PolicyAgent(spec, network, is_greedy)


@pytest.mark.parametrize(
    ("rules", "deals", "nodes", "ends", "infosets", "choices"),
    [
        (ONE_CARD, 30, 1_590, 480, 606, 30),
        (TINY, 420, 79_860, 19_200, 27_852, 1_740),
        (dataclasses.replace(TINY, hand_size=3), 560, 667_632, 165_888, 283_288, 41_368),
        (Rules(num_players=3, num_suits=2, num_ranks=3, hand_size=2), 90, 83_754, 15_120, 51_003, 4_131),
    ],
    ids=["one card", "tiny", "three cards", "three players"],
)
def test_sizes_stay(rules, deals, nodes, ends, infosets, choices):
    """With one dealer. `choices` are information sets with more than one legal action."""
    tree = Tree(rules, [0])
    assert (tree.num_deals, tree.num_nodes, tree.num_ends, tree.num_infosets) == (deals, nodes, ends, infosets)
    assert (np.diff(tree.starts) > 1).sum() == choices


def count_by_referee(rules, dealer):
    """Nodes, ends and information sets of all deals, by playing every course with the referee."""
    tree = Tree(rules, [dealer])
    counts, known = [0, 0], set()
    deals = {tuple(int(mask) for mask in hands) for hands in _deals_of(tree)}
    for deal in deals:
        stack = [()]
        while stack:
            moves = stack.pop()
            referee = Referee(rules, dealer)
            referee.start_hand([cards_of(mask) for mask in deal])
            for move in moves:
                referee.act(move)
            counts[0] += 1
            if referee.is_hand_over:
                counts[1] += 1
                continue
            known.add((referee.seat, deal[referee.seat], moves))
            stack.extend((*moves, move) for move in referee.legal())
    return counts[0], counts[1], len(known)


def _deals_of(tree):
    deck = cards_of(deck_mask(tree.rules))
    assert tree.rules.num_players == 2
    assert tree.rules.hand_size == 1
    return [(1 << one, 1 << other) for one in deck for other in deck if one != other]


@pytest.mark.parametrize("rules", [SMALLEST, ONE_CARD, dataclasses.replace(ONE_CARD, pitch_by_card=True)], ids=str)
def test_tree_is_the_referees(rules):
    tree = Tree(rules, [1])
    assert (tree.num_nodes, tree.num_ends, tree.num_infosets) == count_by_referee(rules, 1)


def test_information_sets_are_what_observations_tell_apart(tree):
    seats = tree.views["viewer"].astype(np.int64)
    compact, _ = observe_compact(tree.views, seats)
    assert len({(seat, row.tobytes()) for seat, row in zip(seats, compact, strict=True)}) == tree.num_infosets
    is_open = tree.infosets >= 0
    assert np.array_equal(tree.seats[is_open], seats[tree.infosets[is_open]])


def test_slots_are_the_legal_actions_of_each_information_set(tree):
    for infoset in range(0, tree.num_infosets, 997):
        low, high = tree.starts[infoset : infoset + 2]
        assert tree.actions[low:high].tolist() == actions_of(legal_mask(tree.views[infoset : infoset + 1]))


def test_play_that_treats_seats_alike_is_worth_nothing(tree):
    result = measure(tree, tree.uniform())
    assert result.values == pytest.approx((0, 0), abs=1e-12)
    assert result.best[0] == pytest.approx(result.best[1], abs=1e-12)
    assert result.nash_conv == pytest.approx(UNIFORM, abs=1e-6)
    assert measure(Tree(TINY, [0]), Tree(TINY, [0]).uniform()).nash_conv == pytest.approx(UNIFORM, abs=1e-6)


def test_values_are_the_mean_of_many_hands():
    """The expected value of a network against itself, dealer apart, is what play gives."""
    agent = new_agent()
    tables = new_tables(TINY, 1, 20_000)
    dealers = tables["dealer"].copy()
    play_hands(tables, [agent], np.zeros((len(tables), 2), np.int64), stream=5)
    net = (tables["deltas"][:, 0] - tables["deltas"][:, 1]).astype(float)
    for dealer in (0, 1):
        one = Tree(TINY, [dealer])
        value = measure(one, ask(agent, one)[0]).values[0]
        played = net[dealers == dealer]
        assert abs(played.mean() - value) < 4 * played.std() / np.sqrt(len(played))


def test_a_best_response_earns_what_it_promises(tree):
    policy = ask(new_agent(seed=3), tree)[0]
    for seat in (0, 1):
        promised, best = tree.respond(policy, seat)
        answer = policy.copy()
        for infoset in np.flatnonzero(best >= 0):
            answer[tree.starts[infoset] : tree.starts[infoset + 1]] = 0
            answer[best[infoset]] = 1
        assert measure(tree, answer).values[seat] == pytest.approx(promised, abs=1e-9)
        again = measure(tree, answer)
        assert again.best[seat] == pytest.approx(promised, abs=1e-9)  # nothing is left to gain for that seat


def test_policies_are_read_as_they_play(tree):
    """Probabilities in real suits are those that the agent draws by."""
    agent = new_agent(seed=7)
    policy, _ = ask(agent, tree)
    sums = np.add.reduceat(policy, tree.starts[:-1])
    assert sums == pytest.approx(np.ones(len(sums)))
    encoded = encode_views(tree.views, 2)
    with torch.inference_mode():
        logits = agent.network(encoded.features, encoded.lengths).numpy()
    seeds = np.random.default_rng(0).integers(0, 2**64, len(tree.views), dtype=np.uint64)
    actions, log_probs = choose_actions(logits, encoded, seeds, False)
    infosets = np.repeat(np.arange(tree.num_infosets), np.diff(tree.starts))
    chosen = policy[tree.actions == actions[infosets]]
    assert np.log(chosen) == pytest.approx(log_probs, abs=1e-4)

    greedy, is_known = ask(new_agent(seed=7, is_greedy=True), tree)
    assert is_known
    assert set(np.unique(greedy)) == {0.0, 1.0}
    likeliest = np.maximum.reduceat(policy, tree.starts[:-1])
    assert policy[greedy == 1] == pytest.approx(likeliest)


@pytest.mark.parametrize(("name", "is_known"), [("random", True), ("passive", False), ("baby", True), ("rules", True)])
def test_other_agents(tree, name, is_known):
    policy, known = ask(load(name), tree, num_samples=8)
    assert known == is_known
    assert np.add.reduceat(policy, tree.starts[:-1]) == pytest.approx(np.ones(tree.num_infosets))
    result = measure(tree, policy)
    assert 1 < result.nash_conv < 4
    if is_known:
        assert result.values == pytest.approx((0, 0), abs=1e-9)


def test_an_equilibrium_is_found(tree):
    result = measure(tree, solve(tree, 200))
    assert result.nash_conv < 0.002
    one = measure(Tree(TINY, [0]), solve(Tree(TINY, [0]), 200))
    assert one.values[0] == pytest.approx(0.3911, abs=0.001)  # what the dealer expects


def test_openspiel_gives_the_same_numbers():
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python import policy as spiel_policy
    from open_spiel.python.algorithms import cfr, expected_game_score, exploitability

    from pitch_env.open_spiel import load_game

    tree, game = Tree(ONE_CARD, [0]), load_game(ONE_CARD)
    result = measure(tree, tree.uniform())
    assert pyspiel.nash_conv(game, pyspiel.UniformRandomPolicy(game)) == pytest.approx(result.nash_conv, abs=1e-9)

    def name_view(view):
        return json.dumps(view_to_dict(view))

    class Policy(spiel_policy.Policy):
        """Probabilities of slots, in OpenSpiel's terms."""

        def __init__(self, tree, slots):
            super().__init__(game, [0, 1])
            keys = [name_view(tree.views[index : index + 1]) for index in range(tree.num_infosets)]
            bounds = zip(tree.starts[:-1], tree.starts[1:], strict=True)
            self.known = {
                key: {int(a): float(p) for a, p in zip(tree.actions[low:high], slots[low:high], strict=True)}
                for key, (low, high) in zip(keys, bounds, strict=True)
            }

        def action_probabilities(self, state, player_id=None):
            seat = state.current_player() if player_id is None else player_id
            return self.known[name_view(state.view(seat))]

    slots, _ = ask(new_agent(ONE_CARD, seed=2), tree)
    result = measure(tree, slots)
    theirs = exploitability.nash_conv(game, Policy(tree, slots), return_only_nash_conv=False)
    assert theirs.nash_conv == pytest.approx(result.nash_conv, abs=1e-9)
    assert theirs.player_improvements == pytest.approx(np.subtract(result.best, result.values), abs=1e-9)
    values = expected_game_score.policy_value(game.new_initial_state(), [Policy(tree, slots)] * 2)
    assert values == pytest.approx(result.values, abs=1e-9)

    small, small_game = Tree(SMALLEST, [0]), load_game(SMALLEST)
    solver = cfr.CFRPlusSolver(small_game)
    for _ in range(8):
        solver.evaluate_and_update_policy()
    theirs = exploitability.nash_conv(small_game, solver.average_policy())
    assert theirs == pytest.approx(measure(small, solve(small, 8)).nash_conv, abs=1e-9)


def test_cfr_of_openspiel_finds_the_value_of_the_smallest_game():
    pyspiel = pytest.importorskip("pyspiel")
    from pitch_env.open_spiel import load_game

    tree, game = Tree(SMALLEST, [0]), load_game(SMALLEST)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(25):
        solver.evaluate_and_update_policy()
    value = pyspiel.expected_returns(game.new_initial_state(), solver.average_policy(), -1, False)[0]
    assert value == pytest.approx(1.5, abs=0.01)
    assert measure(tree, solve(tree, 500)).values[0] == pytest.approx(1.5, abs=0.001)


def test_too_many_deals_and_other_rules_are_refused(tree):
    with pytest.raises(ValueError, match="at most 20,000 deals, these have 381,389,143,895,760"):
        Tree(Rules(num_players=2))
    with pytest.raises(ValueError, match="num_ranks 3 against 4"):
        ask(new_agent(dataclasses.replace(TINY, num_ranks=3)), tree)


def test_command_line(tmp_path, capsys):
    assert main(["exact", "random", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["nash_conv"] == facts["uniform_nash_conv"] == pytest.approx(UNIFORM, abs=1e-6)
    assert facts["is_exact"]
    agent = new_agent(ONE_CARD)
    write_policy(tmp_path / "policy.safetensors", agent.spec, agent.network.state_dict())
    assert main(["exact", str(tmp_path), "--draw"]) == 0
    shown = capsys.readouterr().out
    assert "2 suits of 3 ranks, 1 cards each" in shown
    tree = Tree(ONE_CARD)
    assert f"{measure(tree, ask(agent, tree)[0]).nash_conv:.4f} points a hand" in shown
    assert main(["exact", str(tmp_path), "--ranks", "4"]) == 2
    assert "num_ranks 3 against 4" in capsys.readouterr().err
    assert main(["exact", "rules", "--cards", "6", "--ranks", "13"]) == 2
    assert "at most 20,000 deals" in capsys.readouterr().err


@pytest.mark.slow
def test_the_trainer_comes_near_an_equilibrium():
    """The trainer of the real game, some fifteen seconds on the tiny one: a twenty-fifth of random play's NashConv.

    Seeds end at 0.05 to 0.08. With less entropy at first the bid of 4 dies out, and NashConv stays near 0.3.
    """
    config = Config(
        rules=dataclasses.replace(TINY, max_hands=1),  # every hand at scores of 0, by either dealer
        hidden=[64, 64],
        critic_hidden=[64, 64],
        hands=2048,
        minibatch=1024,
        total_steps=2_000_000,
        entropy=0.15,
        final_entropy=0.03,
        precision="float32",
        shards=1,
    )
    learner, tree = Learner(config), Tree(TINY)
    while learner.num_steps < config.total_steps:
        learner.update()
    learner.close()
    agent = PolicyAgent(PolicySpec(config.rules, (64, 64), 2), learner.average, is_greedy=False)
    result = measure(tree, ask(agent, tree)[0])
    assert result.nash_conv < 0.15
    assert result.values == pytest.approx((0, 0), abs=1e-6)  # seats are alike to a network
