/**
 * Scans heredocs: `<<MARKER`, the body, and the marker again. The indentation of the closing marker is removed from every line.
 */
import { CR, LF, SPACE } from './characters.ts';
import type { LexicalProblem, ScannedWord } from './scan-word.ts';

const validMarker = /^[A-Za-z0-9_-]+$/;

/**
 * Scans the heredoc whose `<<` is at `start`. If a space or the end of the text follows the marker, the text is an ordinary word.
 * An invalid marker is reported in `problem`.
 */
export function scanHeredoc(text: string, start: number): ScannedWord {
	let marker = '';
	let position = start + 2;
	for (; position < text.length; position++) {
		const code = text.charCodeAt(position);
		if (code === LF || code === SPACE) break;
		if (code !== CR) marker += text[position];
	}
	if (text.charCodeAt(position) !== LF) return { text: `<<${marker}`, quote: 'none', end: position };
	const problem = markerProblem(start, position, marker);
	if (problem) return { text: `<<${marker}`, quote: 'none', end: endDespiteBadMarker(text, position, marker), problem };
	return readBody(text, start, position, marker);
}

function markerProblem(start: number, end: number, marker: string): LexicalProblem | undefined {
	if (validMarker.test(marker)) return undefined;
	const location = { lineOffset: start, start, end: start + 2 + marker.length > end ? end : start + 2 + marker.length };
	const hint = 'Write the heredoc like `<<END`, its lines, and `END` on the last line.';
	if (marker === '') {
		const message = (line: number) =>
			`missing opening heredoc marker on line #${line}; must contain only alphanumeric characters, dashes and underscores; got empty string`;
		return { ...location, code: 'syntax/heredoc-marker', message, label: 'a marker is missing', hint };
	}
	if (marker[0] === '<') {
		const message = (line: number) => `too many '<' for heredoc on line #${line}; only use two, for example <<END`;
		return { ...location, code: 'syntax/heredoc-marker', message, label: 'one `<` too many', hint };
	}
	const message = (line: number) =>
		`heredoc marker on line #${line} must contain only alphanumeric characters, dashes and underscores; got '${marker}'`;
	return { ...location, code: 'syntax/heredoc-marker', message, label: 'not a marker', hint };
}

/** Returns the end of a heredoc with an invalid marker, if it can be found, so that its body is not read as directives. */
function endDespiteBadMarker(text: string, end: number, marker: string): number {
	const intendedMarker = marker.replace(/^<+/, '').trim();
	if (intendedMarker === '') return end;
	for (let lineEnd = end; lineEnd !== -1; lineEnd = text.indexOf('\n', lineEnd + 1)) {
		let position = lineEnd + 1;
		while (text[position] === ' ' || text[position] === '\t') position++;
		if (text.startsWith(intendedMarker, position)) return position + intendedMarker.length;
	}
	return end;
}

function readBody(text: string, start: number, openingEnd: number, marker: string): ScannedWord {
	const bodyStart = openingEnd + 1;
	const closingStart = text.indexOf(marker, bodyStart);
	if (closingStart === -1) {
		const message = (number: number) =>
			`incomplete heredoc <<${marker} on line #${number}, expected ending marker ${marker}`;
		const problem: LexicalProblem = {
			code: 'syntax/heredoc-unclosed',
			// Caddy reports an unclosed heredoc at the end of the text.
			lineOffset: text.length,
			start,
			end: start + 2 + marker.length,
			message,
			label: 'never closed',
			hint: `Put \`${marker}\` on a line of its own after the text.`,
		};
		return { text: text.slice(bodyStart), quote: 'heredoc', end: text.length, problem, reachesEnd: true };
	}
	const end = closingStart + marker.length;
	const lastLineStart = text.lastIndexOf('\n', closingStart - 1) + 1;
	if (lastLineStart <= bodyStart) return { text: '', quote: 'heredoc', end };
	const closingIndent = text.slice(lastLineStart, closingStart);
	const lines: string[] = [];
	let problem: LexicalProblem | undefined;
	for (let lineStart = bodyStart; lineStart < lastLineStart; ) {
		const lineEnd = text.indexOf('\n', lineStart);
		const line = text.slice(lineStart, lineEnd);
		if (line === '' || line === '\r') lines.push('');
		else if (line.startsWith(closingIndent)) lines.push(line.slice(closingIndent.length).replaceAll('\r', ''));
		else {
			lines.push(line.replaceAll('\r', ''));
			problem ??= indentationProblem(text, lineStart, lineEnd, marker, closingIndent);
		}
		lineStart = lineEnd + 1;
	}
	return { text: lines.join('\n'), quote: 'heredoc', end, problem };
}

function indentationProblem(
	text: string,
	start: number,
	end: number,
	marker: string,
	closingIndent: string,
): LexicalProblem {
	const line = text.slice(start, end).replaceAll('\r', '');
	const message = (number: number) =>
		`mismatched leading whitespace in heredoc <<${marker} on line #${number} [${line}], expected whitespace [${closingIndent}] to match the closing marker`;
	let indentEnd = start;
	while (indentEnd < end && (text[indentEnd] === ' ' || text[indentEnd] === '\t')) indentEnd++;
	return {
		code: 'syntax/heredoc-indentation',
		lineOffset: start,
		start,
		end: Math.max(indentEnd, start + 1),
		message,
		label: 'does not begin with the indentation of the closing marker',
		hint: `Indent every line of the text at least as far as \`${marker}\`, with the same tabs or spaces.`,
	};
}
