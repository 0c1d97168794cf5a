/** How a request ends that gets no proper answer (management-api 2.2, 4). */
export type FailureCause =
  | { readonly kind: "notSent" }
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  /** No answer, or one that does not tell whether the request was applied. */
  | { readonly kind: "lost"; readonly reason: string; readonly statusCode?: number }
  | {
      readonly kind: "refused";
      readonly as: "business" | "validation" | "tooLarge" | "unauthorized" | "forbidden";
      readonly statusCode: number;
      readonly errorCode?: string;
      readonly detail?: Readonly<Record<string, unknown>>;
    };

/** What the service throws instead of an answer. */
export class Failure extends Error {
  readonly failure: FailureCause;

  constructor(failure: FailureCause) {
    super(failure.kind);
    this.failure = failure;
  }
}
