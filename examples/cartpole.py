"""A policy learns to balance a pole on a cart, by trial and error (REINFORCE).   usage: python examples/cartpole.py [EPISODES]

The cart is pushed left or right; the pole falls when nobody acts. Each push of an episode is made more likely if the time that
the pole stayed up afterwards was longer than usual. The simulation is the one of Barto, Sutton and Anderson (1983).
"""

import math
import sys

import curve

import lucid
from lucid import Tensor, nn, optim
from lucid.distributions import Categorical

EPISODES, LONGEST, DISCOUNT = 400, 200, 0.99
State = tuple[float, float, float, float]


class CartPole:
    """Position and speed of the cart, angle and speed of the pole; a step of 20 ms."""

    def reset(self) -> State:
        self.state: State = tuple(lucid.empty(4).uniform_(-0.05, 0.05).tolist())
        return self.state

    def step(self, right: bool) -> tuple[State, bool]:
        """The next state, and whether the pole has fallen or the cart has left its track."""
        x, speed, angle, turn = self.state
        force, pole, total, half = (10.0 if right else -10.0), 0.1, 1.1, 0.5
        pushed = (force + pole * half * turn**2 * math.sin(angle)) / total
        turning = (9.8 * math.sin(angle) - math.cos(angle) * pushed) / (half * (4 / 3 - pole * math.cos(angle) ** 2 / total))
        moving = pushed - pole * half * turning * math.cos(angle) / total
        self.state = (x + 0.02 * speed, speed + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning)
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)


def episode(game: CartPole, policy: nn.Module) -> tuple[Tensor, int]:
    """The logarithms of the probabilities of what was done, and for how many steps the pole stayed up."""
    state, said = game.reset(), []
    for _ in range(LONGEST):
        choice = Categorical(logits=policy(lucid.tensor(state)))
        action = choice.sample()
        said.append(choice.log_prob(action))
        state, over = game.step(bool(action))
        if over:
            break
    return lucid.stack(said), len(said)


def returns(steps: int) -> Tensor:
    """For each step how long the pole stayed up afterwards; later steps count less."""
    values, total = [], 0.0
    for _ in range(steps):
        total = 1 + DISCOUNT * total
        values.append(total)
    return lucid.tensor(values[::-1])


def main(episodes: int = EPISODES) -> list[int]:
    lucid.manual_seed(0)
    game, policy = CartPole(), nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    lengths, usual = [], 0.0
    for i in range(1, episodes + 1):
        said, steps = episode(game, policy)
        gained = returns(steps)
        usual = gained.mean().item() if i == 1 else 0.95 * usual + 0.05 * gained.mean().item()
        advantage = (gained - usual) / (gained.std(correction=0) + 1.0)
        loss = -(said * advantage).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(steps)
        recent = lengths[-20:]
        curve.progress(i, episodes, f"the pole stays up for {sum(recent) / len(recent):.0f} steps")
    print(curve.draw([float(n) for n in lengths], title=f"steps until the pole falls, {LONGEST} at most, per episode"))
    return lengths


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else EPISODES)
