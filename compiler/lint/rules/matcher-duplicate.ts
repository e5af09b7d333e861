/** The lint rule `matcher/duplicate`. */
import type { Line, Word } from '../../syntax/ast.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports two named matchers in one block that are identical. */
export const matcherDuplicate: LintRule = {
	name: 'matcher/duplicate',
	severity: 'warning',
	summary: 'Two named matchers of one block are identical.',
	documentation: 'Usually one was copied from the other and never changed. If both are right, one name is enough.',
	check: cx => {
		if (!cx.tree) return;
		for (const { lines } of [...cx.tree.namedRoutes, ...cx.tree.sites]) inBlock(lines, cx);
	},
};

function inBlock(lines: readonly Line[], cx: LintContext): void {
	const seen = new Map<string, Word>();
	for (const line of lines) {
		const [name, ...rest] = line.words as readonly [Word, ...Word[]];
		if (name.quote === 'none' && name.text.startsWith('@')) {
			const text = JSON.stringify([rest.map(wordOf), line.block?.lines.map(written).sort()]);
			const earlier = seen.get(text);
			if (earlier && earlier.text !== name.text) {
				cx.report(name.span, `\`${name.text}\` is identical to \`${earlier.text}\`.`, {
					related: [{ span: earlier.span, message: 'first defined here' }],
				});
			} else seen.set(text, name);
		}
		if (line.block) inBlock(line.block.lines, cx);
		for (let at = line.alternative; at; at = at.alternative) if (at.block) inBlock(at.block.lines, cx);
	}
}

function written(line: Line): string {
	return JSON.stringify([line.words.map(wordOf), line.block?.lines.map(written)]);
}

function wordOf({ text, quote }: Word): string {
	return `${quote === 'none' ? '' : '"'}${text}`;
}
