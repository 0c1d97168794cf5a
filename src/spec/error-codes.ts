/** A business error of management-api 7.2, and the fields that its `detail` may have (7.3). */
interface ErrorCodeSpec {
  readonly statusCode: 400 | 404 | 409 | 500;
  readonly section: string;
  readonly detail: readonly string[];
  readonly condition: string;
}

export const ERROR_CODES = {
  AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED: {
    statusCode: 400,
    section: "7.2",
    detail: ["limit", "count", "products"],
    condition: "an ad product would have more than 500 options set as Required Include or Required Exclude",
  },
  TARGETING_CATEGORY_LIMIT_EXCEEDED: {
    statusCode: 400,
    section: "7.2",
    detail: ["targeting", "limit"],
    condition: "the targeting would have more than 100,000 options, sub-options included",
  },
  TARGETING_CATEGORY_LOCKED: {
    statusCode: 400,
    section: "7.2",
    detail: [],
    condition: "a top-level option that an ad product requires or an unended campaign uses is moved into a group",
  },
  TARGETING_CATEGORY_NOT_SUPPORTED: {
    statusCode: 400,
    section: "7.2, 7.4",
    detail: [],
    condition: "the request conflicts with the option's type or with the rules of groups",
  },
  TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED: {
    statusCode: 400,
    section: "7.2",
    detail: ["limit", "count"],
    condition: "an option bulk delete names more than 150 option groups and sub-options",
  },
  TARGETING_COLLECTION_CONTEXT_DUPLICATED: {
    statusCode: 400,
    section: "7.2",
    detail: ["conflicts"],
    condition: "a Context ID added to a group is already an own Context ID of another group of the project",
  },
  TARGETING_CONTEXT_LIMIT_EXCEEDED: {
    statusCode: 400,
    section: "7.2",
    detail: [],
    condition: "an option would hold more than 50,000 Context IDs or 8 MB of them, or the project more than 200,000",
  },
  TARGETING_LOCKED: {
    statusCode: 400,
    section: "7.2",
    detail: [],
    condition: "the targeting to delete has an option in an approved campaign that has not ended",
  },
  PROJECT_NOT_FOUND: {
    statusCode: 404,
    section: "7.2",
    detail: [],
    condition: "the project of the key no longer exists",
  },
  TARGETING_CATEGORY_NOT_FOUND: {
    statusCode: 404,
    section: "7.2",
    detail: [],
    condition: "no such option in a context targeting of the project, or `parent` is not in the same targeting",
  },
  TARGETING_NOT_FOUND: {
    statusCode: 404,
    section: "7.2",
    detail: [],
    condition: "no such context targeting in the project",
  },
  CONTEXT_TARGETING_WRITE_IN_PROGRESS: {
    statusCode: 409,
    section: "7.2, 4.2",
    detail: ["retryAfterMs"],
    condition: "another write of the project is in progress",
  },
  TARGETING_CATEGORY_NAME_DUPLICATE: {
    statusCode: 409,
    section: "7.2",
    detail: ["existingIds", "duplicateOfIndex"],
    condition: "the targeting already has an option of that name, or the name repeats within the request",
  },
  TARGETING_NAME_DUPLICATE: {
    statusCode: 409,
    section: "7.2",
    detail: ["existingId", "duplicateOfIndex"],
    condition: "the project already has a targeting of that name, or the name repeats within the request",
  },
  UNCATCHED: {
    statusCode: 500,
    section: "7.2, 4.1",
    detail: [],
    condition: "an unexpected error; only inside bulk results",
  },
} as const satisfies Record<string, ErrorCodeSpec>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}
