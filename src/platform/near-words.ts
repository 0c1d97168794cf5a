/**
 * Returns the word that was probably meant. It differs from `word` only in case and separators, or in a few letters: at
 * most two, and at most a third of all.
 */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  const plain = withoutSeparators(word);
  return words.find((one) => withoutSeparators(one) === plain) ?? mistyped(plain, words, withoutSeparators);
}

/** Returns a word in lower case without separators: `itemId`, `item-id` and `ITEM_ID` become `itemid`. */
export function withoutSeparators(word: string): string {
  return word.toLowerCase().replace(/[\s_.-]/g, "");
}

/**
 * Returns the word whose plain form is nearest to `plain`. Undefined if all differ in more than two letters, or in more
 * than a third of the letters.
 */
export function mistyped(
  plain: string,
  words: readonly string[],
  plainFormOf: (word: string) => string,
): string | undefined {
  let best: string | undefined;
  let most = Math.min(2, Math.floor(plain.length / 3));
  for (const candidate of words) {
    const distance = editDistance(plain, plainFormOf(candidate), most);
    if (distance > most) continue;
    best = candidate;
    most = distance - 1;
  }
  return best;
}

/** Returns how many letters must be replaced, added or removed. If more than `most`, returns any number above it. */
export function editDistance(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return most + 1;
  let previous = [0];
  for (let column = 1; column <= to.length; column += 1) previous.push(column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    let fewest = row;
    for (let column = 1; column <= to.length; column += 1) {
      const exchanged = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const distance = Math.min(exchanged, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      current.push(distance);
      fewest = Math.min(fewest, distance);
    }
    if (fewest > most) return fewest;
    previous = current;
  }
  return previous[to.length] ?? 0;
}
