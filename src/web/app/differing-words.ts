/** Divides a text into the words that it begins with as another one does, those that differ, and those that end both. */
export function differingWords(text: string, other: string) {
  const [words, others] = [text.split(/(?<= )/), other.split(/(?<= )/)];
  let first = 0;
  while (first < words.length && first < others.length && words[first]?.trimEnd() === others[first]?.trimEnd())
    first += 1;
  let last = 0;
  const most = Math.min(words.length, others.length) - first;
  while (last < most && words.at(-1 - last)?.trimEnd() === others.at(-1 - last)?.trimEnd()) last += 1;
  return {
    before: words.slice(0, first).join(""),
    middle: words.slice(first, words.length - last).join(""),
    after: words.slice(words.length - last).join(""),
  };
}
