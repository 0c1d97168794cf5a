/** What happened to an object, and what to do about it: two sentences of ours. */
export interface Message {
  readonly message: string;
  readonly remedy: string;
}
