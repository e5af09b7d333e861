/** Compares a text with its formatted form line by line, for `fmt --diff` and for the warning about an unformatted file. */

/**
 * Maximum number of pairs of lines that are compared in full. Larger ranges are divided at unique lines, or treated as replaced.
 */
const maxComparedPairs = 250_000;

interface LineRange {
	readonly oldFrom: number;
	readonly oldTo: number;
	readonly newFrom: number;
	readonly newTo: number;
}

/** Returns the lines of a text, each with its newline; the last line may have none. */
export function splitLines(text: string): string[] {
	return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** A line and its mark: ` ` if it is in both texts, `-` if only in the old text, `+` if only in the new text. */
export interface MarkedLine {
	readonly mark: ' ' | '-' | '+';
	readonly line: string;
}

/** Number of unchanged lines around each hunk of a unified diff. */
const CONTEXT_LINES = 3;

/**
 * Returns the number, from 1, of the first line in which two texts differ; undefined if they are equal. CRLF is treated as LF.
 */
export function firstDifferingLine(before: string, after: string): number | undefined {
	const oldText = before.replaceAll('\r\n', '\n');
	const newText = after.replaceAll('\r\n', '\n');
	if (oldText === newText) return undefined;
	let line = 1;
	let index = 0;
	while (index < oldText.length && index < newText.length && oldText[index] === newText[index]) {
		if (oldText[index] === '\n') line++;
		index++;
	}
	return line;
}

/**
 * Returns the unified diff of two texts, as `patch` and `git apply -p0` accept it; '' if the texts are equal. Lines keep their
 * carriage returns, and a last line without a newline is marked. Memory grows linearly with the number of lines.
 */
export function unifiedDifference(oldText: string, newText: string, name: string): string {
	const diffLines = markedLines(splitLines(oldText), splitLines(newText));
	const hunks: string[] = [];
	let oldLine = 1;
	let newLine = 1;
	for (let index = 0; index < diffLines.length; ) {
		if (diffLines[index]!.mark === ' ') {
			oldLine++;
			newLine++;
			index++;
			continue;
		}
		const hunkStart = Math.max(0, index - CONTEXT_LINES);
		let lastChange = index;
		// Changes with few lines between them share a hunk.
		for (let next = index; next < diffLines.length && next - lastChange <= 2 * CONTEXT_LINES; next++)
			if (diffLines[next]!.mark !== ' ') lastChange = next;
		const hunkEnd = Math.min(diffLines.length, lastChange + 1 + CONTEXT_LINES);
		const hunkLines = diffLines.slice(hunkStart, hunkEnd);
		const oldCount = hunkLines.filter(({ mark }) => mark !== '+').length;
		const newCount = hunkLines.filter(({ mark }) => mark !== '-').length;
		const oldRange = formatRange(oldLine - (index - hunkStart), oldCount);
		const newRange = formatRange(newLine - (index - hunkStart), newCount);
		hunks.push(`@@ -${oldRange} +${newRange} @@\n${hunkLines.map(formatMarkedLine).join('')}`);
		for (const { mark } of diffLines.slice(index, hunkEnd)) {
			if (mark !== '+') oldLine++;
			if (mark !== '-') newLine++;
		}
		index = hunkEnd;
	}
	return hunks.length === 0 ? '' : `--- ${name}\n+++ ${name}\n${hunks.join('')}`;
}

/** Formats the range of a hunk as `LINE,COUNT`. An empty range is given the number of the line before it. */
function formatRange(firstLine: number, count: number): string {
	if (count === 0) return `${firstLine - 1},0`;
	return count === 1 ? String(firstLine) : `${firstLine},${count}`;
}

function formatMarkedLine({ mark, line }: MarkedLine): string {
	return line.endsWith('\n') ? `${mark}${line}` : `${mark}${line}\n\\ No newline at end of file\n`;
}

/** Returns the lines of both texts, in order and with marks. */
export function markedLines(oldLines: readonly string[], newLines: readonly string[]): MarkedLine[] {
	const out: MarkedLine[] = [];
	const stack: (LineRange | { readonly same: number; readonly count: number })[] = [
		{ oldFrom: 0, oldTo: oldLines.length, newFrom: 0, newTo: newLines.length },
	];
	for (let task = stack.pop(); task; task = stack.pop()) {
		if ('same' in task) {
			for (let index = 0; index < task.count; index++) out.push({ mark: ' ', line: oldLines[task.same + index]! });
			continue;
		}
		let { oldFrom, oldTo, newFrom, newTo } = task;
		while (oldFrom < oldTo && newFrom < newTo && oldLines[oldFrom] === newLines[newFrom]) {
			out.push({ mark: ' ', line: oldLines[oldFrom]! });
			oldFrom++;
			newFrom++;
		}
		const untrimmedEnd = oldTo;
		while (oldTo > oldFrom && newTo > newFrom && oldLines[oldTo - 1] === newLines[newTo - 1]) {
			oldTo--;
			newTo--;
		}
		if (untrimmedEnd > oldTo) stack.push({ same: oldTo, count: untrimmedEnd - oldTo });
		const anchorPairs = findAnchors(oldLines, newLines, { oldFrom, oldTo, newFrom, newTo });
		if (anchorPairs.length === 0) {
			for (let index = oldFrom; index < oldTo; index++) out.push({ mark: '-', line: oldLines[index]! });
			for (let index = newFrom; index < newTo; index++) out.push({ mark: '+', line: newLines[index]! });
			continue;
		}
		// The last range is pushed first, so that the stack yields the ranges in the order of the text.
		let [oldEnd, newEnd] = [oldTo, newTo];
		for (let index = anchorPairs.length - 1; index >= 0; index--) {
			const [oldAt, newAt] = anchorPairs[index]!;
			stack.push({ oldFrom: oldAt + 1, oldTo: oldEnd, newFrom: newAt + 1, newTo: newEnd }, { same: oldAt, count: 1 });
			oldEnd = oldAt;
			newEnd = newAt;
		}
		stack.push({ oldFrom, oldTo: oldEnd, newFrom, newTo: newEnd });
	}
	return out;
}

/**
 * Returns unchanged lines as pairs of indices in both texts, in order. In a small range, they are a longest common subsequence; in
 * a large range, only lines that occur once in each text are found.
 */
function findAnchors(oldLines: readonly string[], newLines: readonly string[], range: LineRange): [number, number][] {
	const { oldFrom, oldTo, newFrom, newTo } = range;
	if (oldFrom === oldTo || newFrom === newTo) return [];
	if ((oldTo - oldFrom) * (newTo - newFrom) <= maxComparedPairs) return commonLines(oldLines, newLines, range);
	const occurrences = new Map<string, { oldIndex: number; newIndex: number; count: number }>();
	for (let index = oldFrom; index < oldTo; index++) {
		const entry = occurrences.get(oldLines[index]!);
		if (entry) entry.count = 3;
		else occurrences.set(oldLines[index]!, { oldIndex: index, newIndex: -1, count: 1 });
	}
	for (let index = newFrom; index < newTo; index++) {
		const entry = occurrences.get(newLines[index]!);
		if (!entry) continue;
		entry.count++;
		entry.newIndex = index;
	}
	return longestIncreasing([...occurrences.values()].filter(entry => entry.count === 2 && entry.newIndex !== -1));
}

/** Returns the longest series of pairs whose indices increase in both texts (patience sorting). */
function longestIncreasing(entries: readonly { oldIndex: number; newIndex: number }[]): [number, number][] {
	const lastByLength: number[] = [];
	const predecessors = new Int32Array(entries.length).fill(-1);
	for (const [index, entry] of entries.entries()) {
		let low = 0;
		let high = lastByLength.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (entries[lastByLength[middle]!]!.newIndex < entry.newIndex) low = middle + 1;
			else high = middle;
		}
		if (low > 0) predecessors[index] = lastByLength[low - 1]!;
		lastByLength[low] = index;
	}
	const series: [number, number][] = [];
	for (let at = lastByLength[lastByLength.length - 1] ?? -1; at !== -1; at = predecessors[at]!)
		series.push([entries[at]!.oldIndex, entries[at]!.newIndex]);
	return series.reverse();
}

/** Returns a longest common subsequence of the lines in a range, as pairs of indices. */
function commonLines(oldLines: readonly string[], newLines: readonly string[], range: LineRange): [number, number][] {
	const { oldFrom, oldTo, newFrom, newTo } = range;
	const rowWidth = newTo - newFrom + 1;
	const commonLengths = new Uint32Array((oldTo - oldFrom + 1) * rowWidth);
	for (let row = oldTo - oldFrom - 1; row >= 0; row--) {
		for (let column = rowWidth - 2; column >= 0; column--) {
			commonLengths[row * rowWidth + column] =
				oldLines[oldFrom + row] === newLines[newFrom + column]
					? commonLengths[(row + 1) * rowWidth + column + 1]! + 1
					: Math.max(commonLengths[(row + 1) * rowWidth + column]!, commonLengths[row * rowWidth + column + 1]!);
		}
	}
	const pairs: [number, number][] = [];
	let row = 0;
	let column = 0;
	while (row < oldTo - oldFrom && column < rowWidth - 1) {
		if (oldLines[oldFrom + row] === newLines[newFrom + column]) pairs.push([oldFrom + row++, newFrom + column++]);
		else if (commonLengths[(row + 1) * rowWidth + column]! >= commonLengths[row * rowWidth + column + 1]!) row++;
		else column++;
	}
	return pairs;
}
