/** The lint rule `matcher/unused`, which reports a named matcher that is never used. */
import { type SourceSpan, wholeLinesSpan, wholeStart } from '../../source/source.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const matcherUnused: LintRule = {
	name: 'matcher/unused',
	severity: 'warning',
	summary: 'A named matcher is never used.',
	documentation:
		'An unused name is usually a leftover, or its use is misspelled. A Compatfile may contain unused names.',
	checkedForConfigfile: true,
	check: cx => {
		// For a Configfile, the compiler reports unused matchers.
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const definitions = new Map<string, Definition>();
		for (const { lines } of [...cx.tree.sites, ...cx.tree.namedRoutes]) collectDefinitions(lines, definitions);
		for (const { word, span, isUsed } of definitions.values()) {
			if (isUsed) continue;
			cx.report(word.span, `\`${word.text}\` is never used.`, {
				fix: { safety: 'safe', edits: [{ span: wholeLinesSpan(span), text: '' }] },
			});
		}
	},
};

interface Definition {
	readonly word: Word;
	readonly span: SourceSpan;
	isUsed: boolean;
}

/**
 * Collects the definitions of named matchers. A definition in a snippet counts as used if any block that imports the snippet uses
 * it.
 */
function collectDefinitions(lines: readonly Line[], definitions: Map<string, Definition>): void {
	for (const line of lines) {
		const word = line.words[0]!;
		if (word.quote === 'none' && word.text.startsWith('@') && word.text.length > 1) {
			const { source } = word.span;
			const key = `${source.path ?? source.name} ${wholeStart(word.span)}`;
			const used = lines.some(other => other !== line && mentionsName(other, word.text));
			const definition = definitions.get(key);
			if (definition) definition.isUsed ||= used;
			else definitions.set(key, { word, span: line.span, isUsed: used });
		}
		if (line.block) collectDefinitions(line.block.lines, definitions);
	}
}

function mentionsName(line: Line, name: string): boolean {
	return (
		line.words.some((word, index) => word.text === name && index > 0) ||
		(line.block?.lines.some(inner => mentionsName(inner, name)) ?? false) ||
		(line.alternative !== undefined && mentionsName(line.alternative, name))
	);
}
