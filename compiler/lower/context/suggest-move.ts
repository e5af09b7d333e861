/** Suggests moving a line into the block of one of its neighbors. */
import type { Suggestion } from '../../diagnostics/suggest.ts';
import { wholeLinesSpan } from '../../source/source.ts';
import type { Block, Line } from '../../syntax/ast.ts';

/**
 * Suggests moving a line of `outerBlock` into the block of the line there that begins with `ownerName`. The suggestion has no fix
 * if there is no such line, or if the two lines come from different files or snippets.
 */
export function suggestMove(line: Line, outerBlock: Block, ownerName: string): Suggestion {
	const label = `belongs in the block of \`${ownerName}\``;
	const { source, start, end } = line.span;
	const owner = outerBlock.lines.find(({ words, span }) => words[0]!.text === ownerName && span.source === source);
	if (!owner) return { label };
	const ownerLineStart = source.text.lastIndexOf('\n', owner.span.start - 1) + 1;
	const ownerIndentation = /^[ \t]*/.exec(source.text.slice(ownerLineStart, owner.span.start))![0];
	const movedText = `${ownerIndentation}\t${source.text.slice(start, end)}\n`;
	const insertAt = (place: number, text: string) => ({ span: { source, start: place, end: place }, text });
	const { block } = owner;
	// Inserts before the line with the closing brace, which is the first character of that line apart from indentation.
	const insertion = block
		? insertAt(source.text.lastIndexOf('\n', block.close.start - 1) + 1, movedText)
		: insertAt(owner.span.end, ` {\n${movedText}${ownerIndentation}}`);
	return { label, fix: { safety: 'unsafe', edits: [{ span: wholeLinesSpan(line.span), text: '' }, insertion] } };
}
