/** The lint rule `directive/old-spelling`. */
import { directives } from '../../modules/registry/directives.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports a directive with an obsolete name. */
export const oldSpelling: LintRule = {
	name: 'directive/old-spelling',
	severity: 'note',
	summary: 'A directive is written in an obsolete spelling.',
	documentation:
		'`basicauth` is now `basic_auth`, and `skip_log` is now `log_skip`. A Configfile rejects the old names.',
	check: cx => {
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const currentNames = new Map<string, string>();
		for (const { names } of directives)
			for (const oldName of names.compatfile.slice(1)) currentNames.set(oldName, names.compatfile[0]!);
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			const currentName = currentNames.get(name.text);
			if (currentName === undefined || name.quote !== 'none') continue;
			cx.report(name.span, `\`${name.text}\` is now written \`${currentName}\`.`, {
				fix: { safety: 'safe', edits: [{ span: name.span, text: currentName }] },
			});
		}
	},
};
