/** Writes `sub_filter` as `replace`. */
import { quoted, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import { escapedRegexp, hasVariable, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

/** The media types that `sub_filter_types *` stands for: all types. */
const ALL_TYPES = 'application/* audio/* font/* image/* model/* text/* video/*';

/** Writes the `replace` of a scope. It must follow `encode`, because compressed bodies are not searched. */
export function writeReplacements(scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const filters = scope.all('sub_filter');
	if (filters.length === 0) return;
	const onceDirective = scope.last('sub_filter_once');
	const typesDirective = scope.last('sub_filter_types');
	const lastModified = scope.last('sub_filter_last_modified');
	const lines: string[] = [];
	for (const filter of filters) {
		orKeep(filter, out, () => {
			const [text = '', replacement = ''] = filter.args;
			if (hasVariable(text)) throw new Untranslatable('the text to search for cannot depend on the request');
			const replacementWord = quoted(translated(replacement, variables));
			const flags = onceDirective?.args[0] === 'off' ? '' : ' once';
			// In a `text` line, `{$NAME}` would be replaced by an environment variable, so an expression is written.
			if (/[{`]/.test(text)) lines.push(`regexp ${quoted(`(?i)${escapedRegexp(text)}`)} ${replacementWord}${flags}`);
			else lines.push(`text ${quoted(text)} ${replacementWord} ignore_case${flags}`);
			if (hasVariable(replacement))
				cx.head.addLine(
					'# Values of variables that `sub_filter` inserts are escaped, so that they cannot become markup of the page.',
				);
		});
	}
	for (const directive of [onceDirective, typesDirective, lastModified]) if (directive) out.count(directive);
	if (lines.length === 0) return;
	const mediaTypes = new Set(['text/html', ...(typesDirective?.args ?? [])]);
	lines.push(`types ${mediaTypes.has('*') ? ALL_TYPES : [...mediaTypes].map(word).join(' ')}`);
	if (lastModified?.args[0] === 'on') lines.push('keep_validators');
	out.block('replace', () => {
		for (const line of lines) out.line(line);
	});
}
