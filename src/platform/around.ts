/** Observes some work: its duration and its result. Returns what the work returns, and throws what it throws. */
export type Wrapper<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

/** Combines two wrappers: `outer` observes the work including `inner`. */
export function composeWrappers<About, Result>(
  outer: Wrapper<About, Result>,
  inner: Wrapper<About, Result>,
): Wrapper<About, Result> {
  return (about, work) => outer(about, () => inner(about, work));
}
