import { expect, test } from "vitest";
import type { Encoding } from "../../src/files/input-file.ts";
import { certainEncoding, EncodingDetector, textOf } from "../../src/files/text.ts";
import { contentOf } from "./content.ts";

async function decoded(bytes: readonly number[] | Uint8Array, encoding: Encoding, size = 1): Promise<string> {
  let text = "";
  for await (const piece of textOf(contentOf(Uint8Array.from(bytes), size), encoding)) text += piece;
  return text;
}

// "가뷁\n" as a Korean Excel saves it. The second syllable is only in CP949, not in KS X 1001.
const KOREAN = [0xb0, 0xa1, 0x94, 0xee, 0x0a];

test.each([1, 2, 3, 100])("all syllables of Korean Excel are read, in pieces of %i bytes", async (size) => {
  expect(await decoded(KOREAN, "euc-kr", size)).toBe("가뷁\n");
});

test.each([1, 2, 3, 100])("UTF-8 with and without byte order mark, in pieces of %i bytes", async (size) => {
  const bytes = [...Buffer.from("가뷁\n한 글🙂")];
  expect(await decoded(bytes, "utf-8", size)).toBe("가뷁\n한 글🙂");
  expect(await decoded([0xef, 0xbb, 0xbf, ...bytes], "utf-8", Math.max(size, 3))).toBe("가뷁\n한 글🙂");
});

test("a byte order mark says more than the argument", async () => {
  expect(await decoded([0xef, 0xbb, 0xbf, ...Buffer.from("뷁")], "euc-kr", 100)).toBe("뷁");
});

test.each([1, 2, 5, 100])(
  "bytes that are not of the encoding are named by line, in pieces of %i bytes",
  async (size) => {
    const two = [...Buffer.from("한 줄\n두 줄\n")];
    await expect(decoded([...two, 0x41, 0xff, 0x0a, 0x41], "utf-8", size)).rejects.toThrow("line 3 ");
    await expect(decoded([...two, 0x41, 0xeb, 0x0a, 0x41, 0xff], "utf-8", size)).rejects.toThrow("line 3 ");
    await expect(decoded([...two, 0x41, 0xeb], "utf-8", size)).rejects.toThrow("line 3 ");
    await expect(decoded(KOREAN, "utf-8", size)).rejects.toThrow("line 1 ");
    await expect(decoded([...KOREAN, ...KOREAN, 0x41, 0xff, 0x0a], "euc-kr", size)).rejects.toThrow("line 3 ");
    await expect(decoded([...KOREAN, 0x41, 0xb0], "euc-kr", size)).rejects.toThrow("line 2 ");
  },
);

test("a stray byte at the beginning of a part is named, although the part ends inside a character", async () => {
  const line = `${"n".repeat(99)}\n`;
  const bytes = Buffer.concat([
    Buffer.from(`${line.repeat(81)}${"m".repeat(91)}\n`),
    Buffer.from([0x80]),
    Buffer.from(`${line.repeat(81)}${"m".repeat(90)}가\nend\n`),
  ]);
  await expect(decoded(bytes, "utf-8", bytes.length)).rejects.toThrow("line 83 ");
});

const LINES = Buffer.from("line\n".repeat(100));

test.each<[Encoding, Uint8Array]>([
  ["shift_jis", Buffer.concat([LINES, Buffer.from("83200a", "hex")])],
  ["big5", Buffer.concat([LINES, Buffer.from("a1200a", "hex")])],
  ["gb18030", Buffer.concat([LINES, Buffer.from("ff0a", "hex")])],
  ["utf-8", Buffer.concat([Buffer.from("\uFFFD\n".repeat(100)), Buffer.from("ff", "hex")])],
])("an invalid byte in %s is named by its line", async (encoding, bytes) => {
  for (const size of [1, 7, bytes.length]) {
    await expect(decoded(bytes, encoding, size)).rejects.toThrow("line 101 ");
  }
});

test.each(["utf-16le", "utf-16be"] as const)(
  "letters whose bytes look like line breaks are no lines: %s",
  async (encoding) => {
    const half = "上\n".repeat(2);
    const little = Buffer.from(`${half}上上上\uD800x`, "utf16le");
    const bytes = encoding === "utf-16le" ? little : Buffer.from(little).swap16();
    for (const size of [1, 7, 100]) await expect(decoded(bytes, encoding, size)).rejects.toThrow("line 3 ");
    const long = Buffer.from("上\n".repeat(5000), "utf16le");
    const all = Buffer.concat([encoding === "utf-16le" ? long : long.swap16(), bytes]);
    await expect(decoded(all, encoding, all.length)).rejects.toThrow("line 5003 ");
    // Ends in the middle of a letter.
    await expect(decoded(all.subarray(0, 20_001), encoding, 8192)).rejects.toThrow("line 5001 ");
  },
);

test("the line of an invalid byte is named where carriage returns end the lines", async () => {
  await expect(decoded([...Buffer.from("one\rtwo\r"), 0xff, 0x0d], "utf-8", 100)).rejects.toThrow("line 3 ");
});

/** Texts and their bytes in CP949, written by hand. */
const IN_CP949 = {
  옵션: [0xbf, 0xc9, 0xbc, 0xc7],
  "한국 · 미국": [0xc7, 0xd1, 0xb1, 0xb9, 0x20, 0xa1, 0xa4, 0x20, 0xb9, 0xcc, 0xb1, 0xb9],
  "漢字 한글": [0xf9, 0xd3, 0xed, 0xae, 0x20, 0xc7, 0xd1, 0xb1, 0xdb],
  가뷁: KOREAN,
};

async function encodingOf(bytes: readonly number[] | Uint8Array): Promise<string | undefined> {
  const detector = new EncodingDetector();
  const chunk = Buffer.from(bytes);
  detector.take(chunk);
  return await detector.found(async function* () {
    yield chunk;
  });
}

test.each(Object.entries(IN_CP949))("%s is taken for Korean", async (_text, bytes) => {
  expect(await encodingOf([...Buffer.from("name,note\n"), ...bytes])).toBe("euc-kr");
});

/** Texts in encodings of other languages, as hexadecimal bytes. */
const IN_OTHERS = {
  "スニーカー (Shift_JIS)": ["8358836a815b834a815b", "shift_jis"],
  "ayakkabı|şapka (Windows-1254)": ["6179616b6b6162fd7cfe61706b61", "windows-1254"],
  "żółte buty|łódź (Windows-1250)": ["bff3b3746520627574797cb3f3649f", undefined],
  "обувь (Windows-1251)": ["eee1f3e2fc", undefined],
  "鞋子|運動鞋 (Big5)": ["be63a46c7cb942b0cabe63", undefined],
  "鞋子 (GBK)": ["d0acd7d3", undefined],
  "a byte that Windows-1252 lacks": ["61819d61", undefined],
  "kůže (Windows-1250)": ["6bf99e65", undefined],
  "pěkná taška (Windows-1250)": ["70ec6b6ee120746161", undefined],
  "čtvercová (Windows-1250)": ["e874766572636f76e1", undefined],
  "ženské čizme (Windows-1250)": ["9e656e736b6520e8697a6d65", undefined],
  "boží kolač (Windows-1250)": ["626f9eed206b6f6c61e8", undefined],
  "bőr táska|cipő (Windows-1250)": ["62f57220746173", undefined],
  "cipő at the end (Windows-1250)": ["636970f5", undefined],
  "tűz (Windows-1250)": ["74fb7a", undefined],
  "tří (Windows-1250)": ["74f8ed", undefined],
  "bărbat (Windows-1250)": ["62e37262", undefined],
  "cœur (ISO 8859-15)": ["63bd7572", undefined],
  "รองเท้า (Windows-874)": ["c3cda7e0b7e9d2", undefined],
  "ﾎﾞｳｼ (Shift_JIS)": ["cedeb3bc", undefined],
  "スニーカー (EUC-JP)": ["a5b9a5cba1bca5aba1bc", undefined],
} as const;

test.each(Object.entries(IN_OTHERS))("%s is not taken for a Western text", async (_text, [hex, encoding]) => {
  expect(await encodingOf(Buffer.from(`${Buffer.from("a;b\n").toString("hex")}${hex}0a`, "hex"))).toBe(encoding);
});

test("a text of which no encoding is certain is refused with what to do", () => {
  expect(() => certainEncoding(undefined)).toThrow("the encoding of the file is not certain");
  expect(certainEncoding("big5")).toBe("big5");
});

test.each([
  "Kód;Nový;Žižek",
  "þjóð;Ísland",
  "Økonomi;æøå",
  "naïve;Çà;ÄÖÜ",
  "£12;½l;5 m³;±2 °C;µm;¿Qué?",
  "põe;São;irmã;mês;às",
  "più;lunedì;è;caffè;où;août;époque",
  "Søen;høje;Röd",
  "koš;nož",
])("%s may be Western", async (text) => {
  const latin = text.replaceAll("Ž", "\u008E").replaceAll("ž", "\u009E").replaceAll("š", "\u009A");
  expect(await encodingOf(Buffer.from(`${latin}\n`, "latin1"))).toBe("windows-1252");
});

test.each(["Größe;Preis\nFüße;1", "Option;Straße\n", "«Été»;Île\n", "señor,año\n", "Prix €;é\n", "Maße und Höhe"])(
  "%j is taken for Windows-1252, also where two of its letters stand beside each other",
  async (text) => {
    expect(await encodingOf(Buffer.from(text.replaceAll("€", "\u0080"), "latin1"))).toBe("windows-1252");
  },
);
