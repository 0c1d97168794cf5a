/** How a request fails if it gets no valid answer (management-api 2.2, 4). */
export type FailureCause =
  | { readonly kind: "notSent" }
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  /** There was no answer, or one that does not show whether the request was applied. */
  | { readonly kind: "lost"; readonly reason: string; readonly statusCode?: number }
  | {
      readonly kind: "refused";
      readonly as: "business" | "validation" | "tooLarge" | "unauthorized" | "forbidden";
      readonly statusCode: number;
      readonly errorCode?: string;
      readonly detail?: Readonly<Record<string, unknown>>;
    };

/** The service throws this instead of answering. */
export class Failure extends Error {
  readonly failure: FailureCause;

  constructor(failure: FailureCause) {
    super(failure.kind);
    this.failure = failure;
  }
}
