"""A slow, plain referee of a whole match of Pitch, read from the rules R1-R19 alone.

It exists to be compared with faster code, so it shares nothing with that code and keeps no
clever state: whatever a rule asks is worked out from the cards and the bids when it is asked.
"""

RANKS = "23456789TJQKA"  # R2: ace high, 2 low
SUITS = "CDHS"
PIPS = {"T": 10, "A": 4, "K": 3, "Q": 2, "J": 1}  # R16
PASS = 0
FIRST_CARD = 5  # action FIRST_CARD + card plays that card
RULE_FIELDS = (
    *("num_players", "teams", "target", "win_needs_made_bid", "low_point"),
    *("pitch_by_card", "max_hands", "num_suits", "num_ranks", "hand_size"),
)


def suit_of(card):
    return card // 13


def rank_of(card):
    return card % 13


def pips_of(card):
    return PIPS.get(RANKS[rank_of(card)], 0)


def text_of(card):
    return RANKS[rank_of(card)] + SUITS[suit_of(card)]


def deck_of(rules):
    """A shortened deck keeps the first suits and the highest ranks."""
    ranks = range(13 - rules.num_ranks, 13)
    return {suit * 13 + rank for suit in range(rules.num_suits) for rank in ranks}


class Referee:
    def __init__(self, rules, dealer=0, scores=None):
        if rules.teams and rules.num_players != 4:
            raise ValueError("R1: partnership Pitch is for 4 players")
        if not 2 <= rules.num_players <= 7:
            raise ValueError("R1: Pitch is for 2 to 7 players")
        self.rules = rules
        self.seats = list(range(rules.num_players))
        self.num_sides = 2 if rules.teams else rules.num_players
        self.scores = [0] * self.num_sides if scores is None else [int(s) for s in scores]
        if len(self.scores) != self.num_sides:
            raise ValueError(f"R1: scores are for {self.num_sides} sides")
        if dealer not in self.seats:
            raise ValueError(f"R3: no seat {dealer} to deal")
        self.dealer = int(dealer)
        self.deltas = [0] * self.num_sides
        self.winner = None
        self.hands_played = 0
        self.is_hand_over = False
        self._begin([[] for _ in self.seats])
        self.seat = None

    # Table

    def side_of(self, seat):
        return seat % 2 if self.rules.teams else seat  # R1: seats 0 and 2 against 1 and 3

    def after(self, seat):
        return (seat + 1) % len(self.seats)  # R2: clockwise

    @property
    def is_truncated(self):
        return self.winner is None and self.hands_played >= self.rules.max_hands

    @property
    def is_match_over(self):
        return self.winner is not None or self.is_truncated

    def start_hand(self, deal):
        if self.is_match_over:
            raise ValueError("R19: the match is over")
        if self.seat is not None:
            raise ValueError("R12: the hand is not over")
        cards = [card for hand in deal for card in hand]
        if len(deal) != len(self.seats) or any(len(h) != self.rules.hand_size for h in deal):
            raise ValueError(f"R2: {self.rules.hand_size} cards for each of {len(self.seats)} seats")
        if len(set(cards)) != len(cards) or not set(cards) <= deck_of(self.rules):
            raise ValueError("R2: each card dealt is a different card of the deck")
        if self.hands_played > 0:
            self.dealer = self.after(self.dealer)  # R3
        self._begin([[int(card) for card in hand] for hand in deal])

    def _begin(self, deal):
        self.deal = deal
        self.hands = [set(hand) for hand in deal]
        self.bids = []
        self.tricks = []
        self.pitcher = None
        self.trump = None
        self.points = None
        self.is_hand_over = False
        self.seat = self.after(self.dealer)  # R4: the auction starts on the dealer's left

    # What is legal, and why not

    def legal(self):
        return {a for a in range(FIRST_CARD + 52) if self._objection(a) is None}

    def act(self, action):
        objection = self._objection(action)
        if objection is not None:
            raise ValueError(objection)
        action = int(action)
        if action >= FIRST_CARD:
            if self.pitcher is None:
                self._bid(4)  # R9: the card shown is the bid of 4 and the first lead
            self._play(action - FIRST_CARD)
        else:
            self._bid(action)

    def _objection(self, action):
        """None when the action is legal, else a sentence naming the rule it breaks."""
        if action not in range(FIRST_CARD + 52):
            return f"R4: {action!r} is no bid and no card"
        if self.seat is None:
            return "R12: no hand is being played, so nobody is to act"
        if action >= FIRST_CARD:
            card = int(action) - FIRST_CARD
            if card not in self.hands[self.seat]:
                return f"R2: seat {self.seat} does not hold {text_of(card)}"
            if self.pitcher is None:
                if not self.rules.pitch_by_card:
                    return "R9: pitching by a card is off, so the auction takes bids only"
                return None  # R9: legal wherever a bid of 4 is, which is always (R5, R8)
            return self._card_objection(card)
        if self.pitcher is not None:
            return "R10: the auction is over, a card must be played"
        return self._bid_objection(int(action))

    def _bid_objection(self, bid):
        is_dealer = self.seat == self.dealer
        highest = self.bid
        if is_dealer and highest == 0:
            return None if bid >= 2 else "R6: all others passed, so the dealer must bid 2, 3 or 4"
        if bid == PASS:
            return None  # R4
        if bid > highest:
            return None  # R5
        if bid == highest and is_dealer and highest in (1, 2, 3):
            return None  # R7
        return f"R5: a bid must be higher than {highest} (R7: only the dealer may equal it)"

    def _card_objection(self, card):
        if self._is_new_trick():
            return None  # R10, R12: the leader leads any card
        led = suit_of(self.tricks[-1]["cards"][0])
        can_follow = any(suit_of(c) == led for c in self.hands[self.seat])
        if not can_follow or suit_of(card) in (led, self.trump):
            return None
        return f"R11: {text_of(card)} neither follows {SUITS[led]} nor trumps"

    # Auction

    @property
    def bid(self):
        return max((bid for _, bid in self.bids), default=0)

    def _bid(self, bid):
        self.bids.append((self.seat, bid))
        if bid == 4 or self.seat == self.dealer:  # R8, R4: a bid of 4 or the dealer ends it
            # R10, R7: of two equal highest bids the later is the thief's
            self.pitcher = [seat for seat, b in self.bids if b == self.bid][-1]
            self.seat = self.pitcher
        else:
            self.seat = self.after(self.seat)

    # Play

    def _is_new_trick(self):
        return not self.tricks or self.tricks[-1]["winner"] is not None

    def _play(self, card):
        if self.trump is None:
            self.trump = suit_of(card)  # R10
        if self._is_new_trick():
            self.tricks.append({"leader": self.seat, "cards": [], "winner": None})
        trick = self.tricks[-1]
        self.hands[self.seat].remove(card)
        trick["cards"].append(card)
        self.seat = self.after(self.seat)
        if len(trick["cards"]) == len(self.seats):
            trick["winner"] = self._trick_winner(trick)
            self.seat = trick["winner"]  # R12
            if not any(self.hands):
                self._settle()

    def players_of(self, trick):
        """(seat, card) of each card of a trick, in order."""
        seats = [(trick["leader"] + i) % len(self.seats) for i in self.seats]
        return list(zip(seats, trick["cards"], strict=False))

    def _trick_winner(self, trick):
        plays = self.players_of(trick)
        trumps = [p for p in plays if suit_of(p[1]) == self.trump]
        followers = [p for p in plays if suit_of(p[1]) == suit_of(trick["cards"][0])]
        seat, _ = max(trumps or followers, key=lambda p: rank_of(p[1]))  # R12
        return seat

    @property
    def captured(self):
        captured = [set() for _ in self.seats]
        for trick in self.tricks:
            if trick["winner"] is not None:
                captured[trick["winner"]] |= set(trick["cards"])
        return captured

    @property
    def voids(self):
        """Not following proves a void, but for a trump on a plain lead: that is always legal."""
        voids = [set() for _ in self.seats]
        for trick in self.tricks:
            led = suit_of(trick["cards"][0])
            for seat, card in self.players_of(trick):
                if suit_of(card) not in (led, self.trump):  # R11
                    voids[seat].add(led)
        return voids

    # Points and scores

    def trick_points(self):
        points = [0] * self.num_sides
        for seat, cards in enumerate(self.captured):
            points[self.side_of(seat)] += sum(pips_of(card) for card in cards)
        return points

    def _side_that_captured(self, card):
        return next(self.side_of(s) for s in self.seats if card in self.captured[s])

    def _side_that_held(self, card):
        return next(self.side_of(s) for s in self.seats if card in self.deal[s])

    def _hand_points(self):
        """R17 needs no case of its own: a lone trump is the highest and the lowest."""
        trumps = [c for hand in self.deal for c in hand if suit_of(c) == self.trump]
        highest, lowest = max(trumps, key=rank_of), min(trumps, key=rank_of)
        jacks = [c for c in trumps if RANKS[rank_of(c)] == "J"]
        pips = self.trick_points()
        best = [side for side in range(self.num_sides) if pips[side] == max(pips)]
        to_holder = self.rules.low_point == "holder"
        low = self._side_that_held(lowest) if to_holder else self._side_that_captured(lowest)
        return {
            "high": self._side_that_captured(highest),  # R13
            "low": low,  # R14
            "jack": self._side_that_captured(jacks[0]) if jacks else None,  # R15
            "game": best[0] if len(best) == 1 else None,  # R16
        }

    def _settle(self):
        self.points = self._hand_points()
        won = [list(self.points.values()).count(side) for side in range(self.num_sides)]
        pitching = self.side_of(self.pitcher)
        made = won[pitching] >= self.bid
        self.deltas = list(won)  # R18: every other side scores what it won
        if not made:
            self.deltas[pitching] = -self.bid  # R18
        self.scores = [s + d for s, d in zip(self.scores, self.deltas, strict=True)]
        # R19: only the pitcher's side can win, and by the letter even when it was set
        may_win = made or not self.rules.win_needs_made_bid
        if may_win and self.scores[pitching] >= self.rules.target:
            self.winner = pitching
        self.hands_played += 1
        self.is_hand_over = True
        self.seat = None

    # Knowledge

    def known(self, seat):
        """R2: cards dealt to others and cards not dealt are hidden until they are played."""
        return (
            tuple(getattr(self.rules, field) for field in RULE_FIELDS),
            seat,
            self.hands_played,
            tuple(self.scores),
            self.dealer,
            tuple(sorted(self.deal[seat])),
            tuple(self.bids),
            tuple((t["leader"], tuple(t["cards"])) for t in self.tricks),
        )
