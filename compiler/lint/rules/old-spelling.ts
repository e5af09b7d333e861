/** The lint rule `directive/old-spelling`, which reports a directive with an obsolete name. */
import { directives } from '../../modules/registry/directives.ts';
import { linesOf } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Maps the obsolete names of directives to the current ones. */
const CURRENT_NAMES: ReadonlyMap<string, string> = new Map(
	directives.flatMap(({ names: { compatfile } }) =>
		compatfile.slice(1).map(oldName => [oldName, compatfile[0]!] as const),
	),
);

export const oldSpelling: LintRule = {
	name: 'directive/old-spelling',
	severity: 'note',
	summary: 'A directive is written in an obsolete spelling.',
	documentation:
		'`basicauth` is now `basic_auth`, and `skip_log` is now `log_skip`. A Configfile rejects the old names.',
	dependsOn: 'site',
	check: cx => {
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			const currentName = CURRENT_NAMES.get(name.text);
			if (currentName === undefined || name.quote !== 'none') continue;
			cx.report(name.span, `\`${name.text}\` is now written \`${currentName}\`.`, {
				fix: { safety: 'safe', edits: [{ span: name.span, text: currentName }] },
			});
		}
	},
};
