/** `directive/old-spelling`. */
import { directives } from '../../modules/directives/index.ts';
import { linesOf } from '../lint-context.ts';
import type { LintRule } from '../lint-rule.ts';

/** A directive is written as only old files write it. */
export const oldSpelling: LintRule = {
	name: 'directive/old-spelling',
	severity: 'note',
	summary: 'A directive is written as only old files write it.',
	documentation: '`basicauth` is `basic_auth` and `skip_log` is `log_skip` today. A Configfile refuses the old words.',
	check: cx => {
		if (cx.dialect !== 'compatfile' || !cx.tree) return;
		const today = new Map<string, string>();
		for (const { names } of directives)
			for (const old of names.compatfile.slice(1)) today.set(old, names.compatfile[0]!);
		for (const { line } of linesOf(cx.tree)) {
			const name = line.words[0]!;
			const instead = today.get(name.text);
			if (instead === undefined || name.quote !== 'none') continue;
			cx.report(name.span, `\`${name.text}\` is written \`${instead}\` today.`, {
				fix: [{ span: name.span, text: instead }],
			});
		}
	},
};
