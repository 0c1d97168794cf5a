/** In a cell, this text means no Context IDs, or the top level. A blank cell leaves the value unchanged. */
export const NONE = "[]";

/** The column with the reason of each failure in files of failed rows. Reading ignores this column. */
export const REASON_COLUMN = "reason";

/** The headings of each column. The first is written. Reading ignores case, spaces, `_`, `-` and invisible characters. */
export const HEADINGS: Readonly<Record<string, readonly string[]>> = {
  action: ["Action", "작업", "동작", "Aktion"],
  _id: ["Option ID", "id", "옵션 ID", "옵션 아이디", "Options-ID"],
  name: ["Option", "option name", "옵션", "옵션명", "옵션 이름", "이름", "Optionsname", "Bezeichnung"],
  parentName: [
    ...["Group", "parent", "group name", "option group", "parent group", "parent option"],
    ...["그룹", "그룹명", "그룹 이름", "옵션 그룹", "상위 그룹", "상위 옵션"],
    ...["Gruppe", "Gruppenname", "Optionsgruppe", "Übergeordnet", "Übergeordnete Gruppe", "Übergeordnete Option"],
  ],
  contexts: [
    ...["Context IDs", "keywords", "article ids", "article numbers"],
    ...["컨텍스트 ID 목록", "콘텍스트 ID 목록", "키워드 목록", "기사 ID 목록"],
    ...["Kontext-IDs", "Artikel-IDs", "Artikelnummern", "Stichwörter", "Stichworte", "Schlüsselwörter", "Schlagwörter"],
  ],
  contextId: [
    ...["Context ID", "context", "keyword", "article id", "article number"],
    ...["컨텍스트", "콘텍스트", "컨텍스트 ID", "콘텍스트 ID", "키워드", "기사 ID", "기사 번호"],
    ...["Kontext-ID", "Kontext", "Artikel-ID", "Artikelnummer", "Artikel-Nr.", "Artikel-Nr", "Art.-Nr."],
    ...["Stichwort", "Schlüsselwort", "Schlagwort"],
  ],
  op: ["Context Action", "operation", "컨텍스트 작업", "콘텍스트 작업", "Kontext-Aktion"],
  type: ["Is Group", "그룹 여부", "Ist Gruppe"],
  exposeChildren: ["Expose Sub-options", "하위 옵션 노출", "Unteroptionen anzeigen"],
  targeting: ["Targeting", "targeting id", "targeting name", "타게팅", "타겟팅"],
};

/** Returns the heading of a column in a written sheet; the name of the column if it has no other heading. */
export function headingOf(column: string): string {
  return HEADINGS[column]?.[0] ?? column;
}

/** Returns a heading without differences in case, spaces, separators, invisible characters and Unicode composition. */
export function plainHeading(heading: string): string {
  return heading
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s_\-\p{Cf}\p{Cc}]/gu, "");
}

export interface ValidColumns {
  readonly columns: readonly string[];
  /** Groups of columns. The file must have at least one column of each group. */
  readonly required: readonly (readonly string[])[];
  /** Whether unknown columns are errors, because ignoring one would lose data. */
  readonly isStrict?: true;
  readonly spelt?: (name: string) => string | undefined;
  readonly nearest?: (name: string, columns: readonly string[]) => string | undefined;
}

/** The heading in the file, by column. An empty value means that the key is a heading whose column is left out. */
export type ColumnsArgument = Readonly<Record<string, string>>;

export interface Header {
  /** Returns the position of a column, from 0; -1 if the file lacks it. */
  readonly at: (column: string) => number;
  readonly names: readonly string[];
  readonly ignored: readonly string[];
  /** The headings whose columns the caller left out. They are also among the ignored ones. */
  readonly omitted: readonly string[];
}
