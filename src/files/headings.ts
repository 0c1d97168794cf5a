/** A column or field that every file may have, and that is ignored: reject files hold the reason of a failure there. */
export const REASON_COLUMN = "reason";

/**
 * The columns of sheets by the names of the API's fields: the heading that is written, and other headings that mean the
 * same. Case, spaces, `_`, `-` and invisible characters of a heading do not matter.
 */
export const HEADINGS: Readonly<Record<string, readonly string[]>> = {
  action: ["Action", "작업", "동작"],
  _id: ["Option ID", "id", "옵션 ID", "옵션 아이디"],
  name: ["Option", "option name", "옵션", "옵션명", "옵션 이름", "이름"],
  parentName: ["Group", "parent", "group name", "option group", "그룹", "그룹명", "옵션 그룹", "상위 옵션"],
  contexts: ["Context IDs", "keywords", "article ids", "컨텍스트 ID 목록", "콘텍스트 ID 목록", "키워드 목록"],
  contextId: ["Context ID", "context", "keyword", "article id", "컨텍스트 ID", "콘텍스트 ID", "키워드", "기사 ID"],
  op: ["Context Action", "operation", "컨텍스트 작업", "콘텍스트 작업"],
  type: ["Is Group", "그룹 여부"],
  exposeChildren: ["Expose Sub-options", "하위 옵션 노출"],
  targeting: ["Targeting", "targeting id", "targeting name", "타게팅", "타겟팅"],
};

/** The heading that a column is written with; the name itself where it has none. */
export function headingOf(column: string): string {
  return HEADINGS[column]?.[0] ?? column;
}

/** A heading without what does not matter: case, spaces, separators, invisible characters, how Hangul is composed. */
export function plainHeading(heading: string): string {
  return heading
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s_\-\p{Cf}\p{Cc}]/gu, "");
}
