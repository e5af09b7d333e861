/** Inlay hints: the order in which a Compatfile's directives run, and the site that takes another's requests. */
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

/** Returns the hints of a text. `findings` are those of the file. */
export function inlayHints(syntax: TextSyntax, findings: readonly Diagnostic[]): InlayHint[] {
	return [...orderHints(syntax), ...shadowHints(findings)].sort((one, other) => one.offset - other.offset);
}

const FIXED_ORDER =
	"a Caddyfile's directives run in a fixed order, not as they are written. `route` keeps the order of its block.";
const TIES = ' Lines of the same directive are sorted by their matchers, most specific path first.';

/** In a Compatfile, numbers the directives of a block by their order, if they run in another one than they are written in. */
function orderHints(syntax: TextSyntax): InlayHint[] {
	const { dialect, lines } = syntax;
	if (dialect !== 'compatfile') return [];
	const { directives } = registryOf(dialect);
	const positions = directivePositions(orderOf(lines));
	const hints: InlayHint[] = [];
	for (const top of lines) {
		observeLowering(top, kindOfTopLevel(top, dialect, directives), syntax, {
			pipeline: (block, inOrder) => {
				if (inOrder) return;
				const sorted = block.flatMap((line, index) => {
					const position = positions.get(line.words[0]!.text);
					return position === undefined ? [] : [{ line, index, position }];
				});
				const running = sorted.toSorted((one, other) => one.position - other.position || one.index - other.index);
				if (running.every((one, index) => one === sorted[index])) return;
				const steps = [...new Set(running.map(({ position }) => position))];
				for (const { line, position } of running) {
					const step = steps.indexOf(position) + 1;
					const same = running.filter(one => one.position === position).length > 1 ? TIES : '';
					const tooltip = `Step ${step} of ${steps.length}: ${FIXED_ORDER}${same}`;
					hints.push({ offset: line.words[0]!.span.start, label: `${step}.`, tooltip, side: 'before' });
				}
			},
		});
	}
	return hints;
}

/** Returns the order of directives with the simplest `order` options of the global block applied. */
function orderOf(lines: readonly ParsedLine[]): readonly string[] {
	let order: readonly string[] = DEFAULT_ORDER;
	for (const { words } of lines[0]?.words.length === 0 ? (lines[0].block?.lines ?? []) : []) {
		const [keyword, directive, to, other] = words.map(({ text }) => text);
		if (keyword !== 'order' || directive === undefined) continue;
		const isMove = to === 'first' || to === 'last' || to === 'before' || to === 'after';
		if (!isMove) continue;
		order = moveDirective(order, { directive, to, ...(other === undefined ? {} : { other }) }) ?? order;
	}
	return order;
}

function shadowHints(findings: readonly Diagnostic[]): InlayHint[] {
	return findings.flatMap(({ code, span, related, message }) => {
		const by = related?.[0]?.span;
		if (code !== siteShadowed.name || !span || !by) return [];
		const { line } = by.source.position(by.start);
		const { path = '' } = by.source;
		const place = path === span.source.path ? `line ${line}` : `${path.slice(path.lastIndexOf('/') + 1)}:${line}`;
		return [{ offset: span.end, label: `← ${place} answers`, tooltip: message, side: 'after' as const }];
	});
}
