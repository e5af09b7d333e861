/** `regexp/slow`. */
import { slowRegexp } from '../../codegen/regexp.ts';
import type { LintRule } from '../lint-rule.ts';

/** A regular expression can take time with the square of its subject’s length, or worse. */
export const regexpSlow: LintRule = {
	name: 'regexp/slow',
	severity: 'warning',
	summary: 'A regular expression can take time with the square of its subject’s length, or worse.',
	documentation: [
		'Expressions that could take exponential time are refused. In one such as `a.*b.*c` two repetitions can share a text in',
		'many ways, and a subject that almost matches is tried in all of them: who sends long paths or fields chooses how long',
		'the server thinks. Let a repetition exclude what ends it: `a[^b]*b[^c]*c`.',
	].join('\n'),
	check: cx => {
		const seen = new Set<string>();
		const look = (value: unknown, pointer: string): void => {
			if (typeof value !== 'object' || value === null) return;
			for (const [key, inner] of Object.entries(value)) {
				const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
				const holds = typeof inner === 'string' && isRegexp(key, at, value as { readonly [key: string]: unknown });
				if (!holds) {
					look(inner, at);
					continue;
				}
				const why = slowRegexp(inner);
				if (why === undefined || seen.has(at)) continue;
				seen.add(at);
				cx.at(at, `\`${inner}\` can take long: ${why}.`, {
					words: inner,
					hint: 'Let each repetition exclude what may follow it, such as `[^/]*` for `.*`.',
				});
			}
		};
		look(cx.document.sites, '/sites');
		look(cx.document.routes, '/routes');
	},
};

/** Where documents hold expressions: `pattern` of the regexp matchers, `find` of edits, inputs of mappings. */
function isRegexp(key: string, at: string, holder: { readonly [key: string]: unknown }): boolean {
	// What `uri replace` looks for is text.
	if (/\/\d+\/replace\/\d+\/find$/.test(at)) return false;
	if (key === 'pattern') return String(holder.type ?? '').endsWith('_regexp');
	return key === 'find' || key === 'input_regexp' || key === 'regexp';
}
