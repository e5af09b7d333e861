/** The lint rule `matcher/duplicate`, which reports two named matchers in one block that are identical. */
import type { Line, Word } from '../../syntax/ast.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const matcherDuplicate: LintRule = {
	name: 'matcher/duplicate',
	severity: 'warning',
	summary: 'Two named matchers of one block are identical.',
	documentation: 'Usually one was copied from the other and never changed. If both are right, one name is enough.',
	dependsOn: 'site',
	check: cx => {
		if (!cx.tree) return;
		for (const { lines } of [...cx.tree.namedRoutes, ...cx.tree.sites]) checkBlock(lines, cx);
	},
};

function checkBlock(lines: readonly Line[], cx: LintContext): void {
	const namesByCondition = new Map<string, Word>();
	for (const line of lines) {
		const [name, ...conditionWords] = line.words as readonly [Word, ...Word[]];
		if (name.quote === 'none' && name.text.startsWith('@')) {
			const condition = JSON.stringify([conditionWords.map(wordKey), line.block?.lines.map(lineKey).sort()]);
			const earlierName = namesByCondition.get(condition);
			if (earlierName && earlierName.text !== name.text) {
				cx.report(name.span, `\`${name.text}\` is identical to \`${earlierName.text}\`.`, {
					related: [{ span: earlierName.span, message: 'first defined here' }],
				});
			} else namesByCondition.set(condition, name);
		}
		if (line.block) checkBlock(line.block.lines, cx);
		for (let alternative = line.alternative; alternative; alternative = alternative.alternative)
			if (alternative.block) checkBlock(alternative.block.lines, cx);
	}
}

function lineKey(line: Line): string {
	return JSON.stringify([line.words.map(wordKey), line.block?.lines.map(lineKey)]);
}

function wordKey({ text, quote }: Word): string {
	return `${quote === 'none' ? '' : '"'}${text}`;
}
