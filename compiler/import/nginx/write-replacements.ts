/** Writes `sub_filter` as `replace`. */
import { quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import { escapedRegexp, hasVariable, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

/** What `sub_filter_types *` means: all types. */
const ALL_TYPES = 'application/* audio/* font/* image/* model/* text/* video/*';

/** Writes the replacements in bodies that hold in a scope. They follow `encode`, because compressed bodies are not searched. */
export function writeReplacements(scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const filters = scope.all('sub_filter');
	if (filters.length === 0) return;
	const once = scope.last('sub_filter_once');
	const types = scope.last('sub_filter_types');
	const validators = scope.last('sub_filter_last_modified');
	const lines: string[] = [];
	for (const one of filters) {
		orKeep(one, out, () => {
			const [text = '', replacement = ''] = one.args;
			if (hasVariable(text)) throw new Untranslatable('the text to search for cannot depend on the request');
			const written = quoted(translated(replacement, variables));
			const flags = once?.args[0] === 'off' ? '' : ' once';
			// Outside of an expression, `{$NAME}` would be replaced from the environment.
			if (/[{`]/.test(text)) lines.push(`regexp ${quoted(`(?i)${escapedRegexp(text)}`)} ${written}${flags}`);
			else lines.push(`text ${quoted(text)} ${written} ignore_case${flags}`);
			if (hasVariable(replacement))
				cx.head.line(
					'# Values of variables that `sub_filter` inserts are escaped, so that they cannot become markup of the page.',
				);
		});
	}
	for (const one of [once, types, validators]) if (one) out.count(one);
	if (lines.length === 0) return;
	const media = new Set(['text/html', ...(types?.args ?? [])]);
	lines.push(`types ${media.has('*') ? ALL_TYPES : [...media].map(word).join(' ')}`);
	if (validators?.args[0] === 'on') lines.push('keep_validators');
	out.block('replace', () => {
		for (const line of lines) out.line(line);
	});
}
