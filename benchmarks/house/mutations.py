"""Mistakes on purpose in what is computed for each observation, each with the tests that have to see it."""

from __future__ import annotations

from typing import NamedTuple

_E = "explainers/attributary_explainers"
_T = "tests/explainers"


class Mutation(NamedTuple):
    """A mistake: in a file one text, which is there once, becomes another."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _of(file: str, tests: str, *mistakes: tuple[str, str, str]) -> list[Mutation]:
    return [
        Mutation(what, f"{_E}/{file}", old, new, tuple(f"{_T}/{test}" for test in tests.split()))
        for what, old, new in mistakes
    ]


MUTATIONS = [
    *_of(
        "core/losses.py",
        "losses/test_losses.py core/test_increments.py",
        ("cross_entropy", "min(max(p, epsilon), 1.0 - epsilon)", "max(p, epsilon)"),
        ("brier", "(1.0 - p) * (1.0 - p) + squares", "(1.0 - p) + squares"),
        ("absolute", "return abs(target - prediction)", "return target - prediction"),
        ("squared", "return difference * difference", "return abs(difference)"),
        ("loss_of, other classes", "if c != column:", "if c > column:"),
        ("loss_of, an unknown label", "if column >= 0 else 0.0\n        return cross", "\n        return cross"),
        ("are_finite", "for r in range(start, stop):", "for r in range(start, stop - 1):"),
    ),
    *_of(
        "core/losses.py",
        "incremental/test_coalitions.py",
        ("slope_of", "return 2.0 * (p - target)", "return 2.0 * (target - p)"),
        ("slope_of, a label", "2.0 * (p - 1.0) if is_label", "2.0 * p if is_label"),
    ),
    *_of(
        "core/losses.py",
        "batch/test_mixing.py",
        ("losses_at", "i = which[r]", "i = which[0]"),
    ),
    *_of(
        "core/increments.py",
        "core/test_increments.py incremental/test_coalitions.py",
        ("growth", "total += loss - own", "total += loss"),
        ("growth, the mean", "increments[i] = total / draws", "increments[i] = total"),
        ("growth, the least loss", "self.low, self.high = min(self.low, loss)", "self.low, self.high = min(own, loss)"),
        ("walk", "increments[player] += share * (previous - loss)", "increments[step] += share * (previous - loss)"),
        ("walk, the rows of a coalition", "first += n", "first += 1"),
        ("walk, several orders", "share = 1.0 / share\n    for i", "share = 1.0\n    for i"),
        ("less_bias", "(of_one_half + of_other_half) - plain, most", "(of_one_half + of_other_half), most"),
        ("means_of_coalition", "(means[1, c] + means[2, c]) * 0.5", "means[1, c]"),
        ("means_of_coalition, not in halves", "(a + b) * (1.0 / of_all)", "(a + b) * (0.5 / of_half)"),
        ("influence_of", "(P[first + j, c] - means[0, c])", "P[first + j, c]"),
        ("loss_of_mean", "bias += 0.5 * (above + below) - plain", "bias += 0.5 * (above + below)"),
        ("walk of parts", "parts[player, j] -= share", "parts[player, j] += share"),
        ("walk of parts, the mean", "parts[i, j] += increments[i]", "parts[i, j] += 0.0"),
    ),
    *_of(
        "incremental/pfi.py",
        "incremental/test_together.py",
        ("iPFI, where its rows begin", "growth(losses.array, losses.start,", "growth(losses.array, 1,"),
    ),
    *_of(
        "incremental/sage.py",
        "proofs/test_naive_reevaluation.py",
        ("iSAGE, what is removed at first", "orders, marginal_loss, math.nan, LARGEST", "orders, 0.0, LARGEST"),
    ),
    *_of(
        "core/smoothing.py",
        "smoothing/test_contrast.py smoothing/test_means.py",
        ("step", "self.total += weight * (1.0 - self.total)", "self.total += weight"),
        ("step, squares", "* self.squares + rate * rate if", "* self.squares + rate if"),
        ("step, times", "-expm1(times * log1p(-weight))", "-expm1(log1p(-weight))"),
        ("smooth", "self._moments[0, f] += step", "self._moments[0, f] = increment"),
        ("smooth, who is named", "f = self._columns[i]", "f = i"),
        ("smooth, when a name was seen", "self._moments[4, f] = n", "self._moments[4, f] = 0.0"),
        ("smooth, the slow mean",
         "slow * (increment - self._moments[1, f])",
         "rate * (increment - self._moments[1, f])"),
        ("smooth, the spread", "spread * (apart * apart -", "spread * (abs(apart) -"),
        ("smooth, the variance", "(self._moments[3, f] + difference * step)", "(self._moments[3, f] + step * step)"),
        ("smooth, inner products", "self._weights[3] + rate * slow", "self._weights[3] + rate * rate"),
        ("smooth, the expected spread",
         "2.0 * self._weights[3] + self._weights[4]",
         "self._weights[3] + self._weights[4]"),
    ),
    *_of(
        "core/smoothing.py",
        "proofs/test_naive_reevaluation.py",
        ("twice_smoothed", "(slower * moments[1, f] - moments[0, f])", "(slower * moments[1, f] + moments[0, f])"),
    ),
    *_of(
        "core/draws.py",
        "core/test_reservoir.py imputers/test_strata.py imputers/test_marginal.py",
        ("draw", "int((j + draw.next()) * part)", "int(draw.next() * n * part)"),
        ("draw, the order", "self._order[self._columns[i], min(", "self._order[i, min("),
    ),
    *_of(
        "core/draws.py",
        "fast_paths/test_explainers.py",
        ("replaced features", "self._matrix[self._slots[i, j], column]", "self._matrix[self._slots[i, 0], column]"),
        ("replaced features, the others", "X[r, f] = X[0, f]", "X[r, f] = self._matrix[self._slots[i, j], f]"),
        ("walks", "X[r, f] = X[r - n, f]", "X[r, f] = X[r - 1, f]"),
        ("walks, kept features",
         "self._orders[o, size]]\n                X[r, column] = X[0, column]",
         "self._orders[o, size]]\n                X[r, column] = X[start, column]"),
    ),
    *_of(
        "core/uniforms.py",
        "proofs/test_naive_reevaluation.py incremental/test_sage_known.py",
        ("permute", "for i in range(size - 1, 0, -1):", "for i in range(size - 1, 1, -1):"),
        ("permute, pairs of orders", "orders[o - 1, size - 1 - i]", "orders[o - 1, i]"),
    ),
    *_of(
        "core/reservoir.py",
        "core/test_reservoir.py imputers/test_strata.py",
        ("put", "self._matrix[slot, j] = row[j]", "self._matrix[slot, j] = keys_of_row[j]"),
        ("put, the key",
         "self._order[j, at] = slot\n            self._keys[j, slot] = key",
         "self._order[j, at] = slot\n            self._keys[j, slot] = 0.0"),
        ("put, ties",
         "(self._keys[j, other] == key and other < slot)",
         "(self._keys[j, other] == key and other > slot)"),
        ("halves, put", "wanted = n // 2", "wanted = (n + 1) // 2"),
        ("halves, by age", "if number < slots[3, border]:", "if number <= slots[3, slot]:"),
        ("halves, draw", "is_older = j < of_older and n_older > 0", "is_older = j <= of_older and n_older > 0"),
        ("halves, the parts", "int((j - of_older + u) * width)", "int(u * width)"),
    ),
    *_of(
        "core/rows.py",
        "core/test_rows.py",
        ("rows, large integers", "value < 9007199254740992 else", "value < 2**60 else"),
        ("rows, their types", "kind != _kind(value)", "kind == _OBJECT != _kind(value)"),
        ("rows, the order of names", "return type(name) is str or repr(name) == repr(own)", "return True"),
        ("rows, those that move up", "self._of[i] = self._of[i + 1]", "self._of[i] = self._of[i]"),
        ("rows, means of some", "range(first, min(stop, self._n), step):", "range(min(stop, self._n)):"),
        ("rows, means of values that are no numbers", 'len(names) or "?" in form.codes', "len(names)"),
        ("rows, means of large values", "if not abs(value) < _LARGEST:", "if value != value:"),
        ("rows, room for more",
         "numbers[i, j] = self._numbers[self._first + i, j]",
         "numbers[i, j] = self._numbers[i, j]"),
    ),
    *_of(
        "core/waiting.py",
        "imputers/test_reservoirs.py proofs/test_naive_reevaluation.py",
        ("waiting room, who is chosen", "draw.next() * chosen_of < of_size", "draw.next() * chosen_of < of_size / 2"),
        ("waiting room, who leaves", "leaving = int(draw.next() * self._n_behind)", "leaving = 0"),
        ("waiting room, the gap", "number - 1 + min(self._gap, number)", "number + min(self._gap, number)"),
    ),
    *_of(
        "imputers/reservoirs.py",
        "imputers/test_reservoirs.py",
        ("uniform reservoir", "int(rng.integers(self.n_seen))", "int(rng.integers(self.size))"),
        ("geometric reservoir", "return int(rng.integers(self.size))", "return int(rng.integers(self.size - 1))"),
    ),
    *_of(
        "core/columns.py",
        "evaluation/test_schema.py incremental/test_forms.py",
        ("read, another number of features", "if len(x) != self._n:", "if len(x) < self._n:"),
        ("read, texts", "value = codes[j].get(value)", "value = codes[j].get(value, 0)"),
        ("read, integers that are too large",
         "if not -9007199254740992 < value < 9007199254740992:",
         "if not -(2**70) < value < 2**70:"),
        ("read, numbers that are too large",
         "if not -_EXACT < number < _EXACT and number - number != 0.0:",
         "if number != number:"),
    ),
    *_of(
        "core/evaluators/trees.py",
        "core/test_trees.py fast_paths/test_forests.py fast_paths/test_trees.py fast_paths/test_trees_upkeep.py",
        ("a way down", "if value <= node.threshold", "if value < node.threshold"),
        ("a way down, categories", "if value == node.threshold", "if value != node.threshold"),
        ("a way down, what is missing", "one.detour = one.left if i == 0 else one.right", "one.detour = one.left"),
        ("a way down, many children", "i: Any = one.places.get(value)", "i: Any = one.places.get(0.0)"),
        ("a way down, alternates",
         "if again:\n            self.alternates.append(leaf)",
         "if again:\n            pass"),
        ("rows alike, the first one",
         "if not self.first[r] & self.ways[0]:",
         "if not self.first[r] & (self.ways[0] >> 1):"),
        ("rows alike, at a leaf",
         "if self.ends[0] == leaf.number and not self.first[r] & leaf.looks:",
         "if self.ends[0] == leaf.number:"),
        ("rows alike, of one draw",
         "not self.lagged[r] & self.ways[r - self.lag]",
         "not self.first[r] & self.ways[r - self.lag]"),
        ("votes, weights of trees", "factor * self.weight", "factor"),
        ("votes, shares", "self.P[r, c] /= total", "self.P[r, c] /= total + 1e-6"),
        ("votes, errors of leaves", "total * leaf.error * leaf.error", "total * leaf.error"),
        ("votes, naive Bayes", "- _HALF_LOG_TAU - leaf.known[g + 2]", "- _HALF_LOG_TAU + leaf.known[g + 2]"),
        ("votes, naive Bayes of categories", "c * leaf.places[2 * n + f] + int(value)", "int(value)"),
        ("votes, the better rule", "leaf.live._nb_correct_weight >=", "leaf.live._nb_correct_weight <"),
        ("votes, a variance", "variance = estimate._S / (n - 1.0)", "variance = estimate._S / n"),
        ("votes, what a leaf has learnt", "if weight is not leaf.seen[i]:", "if weight is None:"),
        ("votes, where a leaf looks", "leaf.looks |= self.bits[leaf.places[f]]", "leaf.looks |= 0"),
        ("numbers, what a leaf has learnt", "if mean.n is not leaf.seen:", "if leaf.seen is None:"),
        ("numbers, linear leaves", "total += leaf.base\n", "total -= leaf.base\n"),
        ("numbers, the mean of alternates", "self.votes[r, 0] /= n", "self.votes[r, 0] /= 1.0"),
        ("numbers, the better rule", "not live._fmse_mean < live._fmse_model", "live._fmse_mean < live._fmse_model"),
        ("medians", "(ordered[half - 1] + ordered[half]) / 2.0", "ordered[half]"),
    ),
    *_of(
        "core/evaluators/linear.py",
        "fast_paths/test_linear.py fast_paths/test_pipelines.py",
        ("sums, the last of four rows", "of_u += (z - mean) * weight if", "of_u += z * weight if"),
        ("sums, scaled weights", "weight = weight / self._roots[j] if", "weight = weight * self._roots[j] if"),
        ("sums, one-hot columns", "self._sums[c, r] += table[code, 1 + c]", "self._sums[c, r] += table[code, 1]"),
        ("probabilities", "p = 1.0 / (1.0 + exp(-total))", "p = 1.0 / (1.0 + exp(total))"),
        ("probabilities, cut", "if total < -30.0:", "if total < -40.0:"),
        ("probabilities of many classes",
         "self._predictions[r, c] - greatest)",
         "self._predictions[r, c] - greatest - 1e-3 * c)"),
        ("scaled columns", "(z - less) / divisor if", "(z + less) / divisor if"),
    ),
    *_of(
        "core/evaluators/linear.py",
        "evaluation/test_gaps.py",
        ("sums, what is missing",
         "of_t += (z - mean) * weight if z == z else 0.0",
         "of_t += (z - mean) * weight if z == z else weight"),
    ),
    *_of(
        "core/evaluators/bayes.py",
        "fast_paths/test_naive_bayes.py",
        ("Gaussian, rows alike", "terms[r] += first", "terms[r] += first if r else 0.0"),
        ("Gaussian, densities", "exp(-0.5 * z * z) / deviation", "exp(-0.5 * z * z)"),
        ("naive Bayes that counts", "rows[r, source] > limit", "rows[r, source] >= limit"),
    ),
    *_of(
        "core/evaluators/neighbours.py",
        "fast_paths/test_neighbours.py",
        ("neighbours, the limit", "limit = max(limit, _square(", "limit = min(limit, _square("),
        ("neighbours, the order", "far[r, q - 1] > distance", "far[r, q - 1] >= distance"),
    ),
]  # fmt: skip
