/** Writes `sub_filter` as `replace`. */
import { quoteText, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import { escapeRegexp, hasVariable, translateText, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';

/** The media types that `sub_filter_types *` stands for: all types. */
const ALL_MEDIA_TYPES = 'application/* audio/* font/* image/* model/* text/* video/*';

/** Writes the `replace` of a scope. It must follow `encode`, because compressed bodies are not searched. */
export function writeReplacements(scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const filters = scope.directivesIn('sub_filter');
	if (filters.length === 0) return;
	const onceDirective = scope.lastDirective('sub_filter_once');
	const typesDirective = scope.lastDirective('sub_filter_types');
	const lastModified = scope.lastDirective('sub_filter_last_modified');
	const lines: string[] = [];
	for (const filter of filters) {
		translateOrKeep(filter, out, () => {
			const [searchText = '', replacement = ''] = filter.args;
			if (hasVariable(searchText)) throw new Untranslatable('the text to search for cannot depend on the request');
			const replacementWord = quoteText(translateText(replacement, variables));
			const onceFlag = onceDirective?.args[0] === 'off' ? '' : ' once';
			// In a `text` line, `{$NAME}` would be replaced by an environment variable, so an expression is written.
			if (/[{`]/.test(searchText))
				lines.push(`regexp ${quoteText(`(?i)${escapeRegexp(searchText)}`)} ${replacementWord}${onceFlag}`);
			else lines.push(`text ${quoteText(searchText)} ${replacementWord} ignore_case${onceFlag}`);
			if (hasVariable(replacement))
				cx.head.addLine(
					'# Values of variables that `sub_filter` inserts are escaped, so that they cannot become markup of the page.',
				);
		});
	}
	for (const directive of [onceDirective, typesDirective, lastModified]) if (directive) out.countTranslated(directive);
	if (lines.length === 0) return;
	const mediaTypes = new Set(['text/html', ...(typesDirective?.args ?? [])]);
	lines.push(`types ${mediaTypes.has('*') ? ALL_MEDIA_TYPES : [...mediaTypes].map(word).join(' ')}`);
	if (lastModified?.args[0] === 'on') lines.push('keep_validators');
	out.writeBlock('replace', () => {
		for (const line of lines) out.writeLine(line);
	});
}
