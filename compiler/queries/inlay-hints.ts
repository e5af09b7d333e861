/**
 * Inlay hints: the order in which the directives of a Compatfile run, and which site answers the requests for a shadowed address.
 */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { siteShadowed } from '../lint/rules/site-shadowed.ts';
import { DEFAULT_ORDER, directivePositions, moveDirective } from '../lower/directive-order.ts';
import { registryOf } from '../lower/registry.ts';
import type { ParsedLine } from '../syntax/parsed-file.ts';
import { observeLowering } from './observed-lowering.ts';
import { kindOfTopLevel, type TextSyntax } from './text-syntax.ts';

/** A short text that an editor shows within a line. */
export interface InlayHint {
	readonly offset: number;
	readonly label: string;
	readonly tooltip: string;
	readonly side: 'before' | 'after';
}

/** Returns the hints for a text. `findings` are all findings in the file. */
export function inlayHints(syntax: TextSyntax, findings: readonly Diagnostic[]): InlayHint[] {
	return [...orderHints(syntax), ...shadowHints(findings)].sort((one, other) => one.offset - other.offset);
}

const FIXED_ORDER_NOTE =
	"a Caddyfile's directives run in a fixed order, not as they are written. `route` keeps the order of its block.";
const TIE_RULE_NOTE = ' Lines of the same directive are sorted by their matchers, most specific path first.';

/**
 * Numbers the directives in the blocks of a Compatfile by the order in which they run, where they are written in a different order.
 */
function orderHints(syntax: TextSyntax): InlayHint[] {
	const { dialect, lines } = syntax;
	if (dialect !== 'compatfile') return [];
	const { directives } = registryOf(dialect);
	const positions = directivePositions(effectiveOrder(lines));
	const hints: InlayHint[] = [];
	for (const topLine of lines) {
		observeLowering(topLine, kindOfTopLevel(topLine, dialect, directives), syntax, {
			onPipeline: (block, inOrder) => {
				if (inOrder) return;
				const writtenLines = block.flatMap((line, index) => {
					const position = positions.get(line.words[0]!.text);
					return position === undefined ? [] : [{ line, index, position }];
				});
				const sortedLines = writtenLines.toSorted(
					(one, other) => one.position - other.position || one.index - other.index,
				);
				if (sortedLines.every((one, index) => one === writtenLines[index])) return;
				const stepPositions = [...new Set(sortedLines.map(({ position }) => position))];
				for (const { line, position } of sortedLines) {
					const step = stepPositions.indexOf(position) + 1;
					const tieRule = sortedLines.filter(one => one.position === position).length > 1 ? TIE_RULE_NOTE : '';
					const tooltip = `Step ${step} of ${stepPositions.length}: ${FIXED_ORDER_NOTE}${tieRule}`;
					hints.push({ offset: line.words[0]!.span.start, label: `${step}.`, tooltip, side: 'before' });
				}
			},
		});
	}
	return hints;
}

/** Returns the order of directives with the changes by `order` options in the global block. */
function effectiveOrder(lines: readonly ParsedLine[]): readonly string[] {
	let order: readonly string[] = DEFAULT_ORDER;
	for (const { words } of lines[0]?.words.length === 0 ? (lines[0].block?.lines ?? []) : []) {
		const [keyword, directive, position, otherDirective] = words.map(({ text }) => text);
		if (keyword !== 'order' || directive === undefined) continue;
		const isMove = position === 'first' || position === 'last' || position === 'before' || position === 'after';
		if (!isMove) continue;
		order =
			moveDirective(order, {
				directive,
				to: position,
				...(otherDirective === undefined ? {} : { other: otherDirective }),
			}) ?? order;
	}
	return order;
}

function shadowHints(findings: readonly Diagnostic[]): InlayHint[] {
	return findings.flatMap(({ code, span, related, message }) => {
		const coveringSpan = related?.[0]?.span;
		if (code !== siteShadowed.name || !span || !coveringSpan) return [];
		const { line } = coveringSpan.source.position(coveringSpan.start);
		const { path = '' } = coveringSpan.source;
		const place = path === span.source.path ? `line ${line}` : `${path.slice(path.lastIndexOf('/') + 1)}:${line}`;
		return [{ offset: span.end, label: `← ${place} answers`, tooltip: message, side: 'after' as const }];
	});
}
