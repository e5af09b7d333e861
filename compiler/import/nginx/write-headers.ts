/** Translates header fields, compression and the maximum size of request bodies, which are alike for all kinds of content. */
import { type ConfigfileWriter, quoteText, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { secondsOf, sizeOf, translateText, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { isCached } from './write-cache.ts';
import { translateOrKeep } from './write-rewrites.ts';

/** Matches the statuses of responses to which nginx adds the fields of `add_header` lines without `always`. */
const SUCCESS_MATCHER = 'match status 200 201 204 206 301 302 303 304 307 308';

/** Translates `add_header` and `expires`. With `isForErrors`, writes only the fields that error responses get as well. */
export function writeFields(scope: Scope, out: ConfigfileWriter, variables: Variables, isForErrors = false): void {
	for (const directive of scope.directivesIn('add_header')) {
		const [field = '', value = '', always] = directive.args;
		if (isForErrors && always !== 'always') continue;
		// A field without a value is not sent. A location uses this to turn inherited fields off.
		const isNeverSent = value === '' || (value === '$upstream_cache_status' && !isCached(scope));
		if (isNeverSent) out.countTranslated(directive);
		else
			translateOrKeep(directive, out, () => {
				const text = translateText(value, variables);
				const edit = `${word(`+${field}`)} ${quoteText(text)}`;
				const writeHeader = (): void =>
					out.writeBlock('header', () => {
						out.writeLine(edit);
						if (!isForErrors) out.writeLine(always === 'always' ? 'defer' : SUCCESS_MATCHER);
					});
				// nginx does not send a field with an empty value, so a condition is added if the value may be empty.
				const [placeholders] = /^(?:\{[^{}]+\})+$/.exec(text) ?? [];
				const isSetLater = value.includes('$upstream_');
				if (placeholders === undefined || isSetLater) writeHeader();
				else {
					const emptyTests = placeholders.match(/\{[^{}]+\}/g)!.map(placeholder => `vars ${placeholder} ""`);
					const isSingle = emptyTests.length === 1;
					out.writeBlock(
						isSingle ? `when not ${emptyTests[0]}` : `when not ( ${emptyTests.join(' and ')} )`,
						writeHeader,
					);
				}
			});
	}
	const expires = isForErrors ? undefined : scope.lastDirective('expires');
	if (expires) translateOrKeep(expires, out, () => writeExpires(expires.args, out));
}

/** Reports whether a scope adds header fields to error responses. */
export function hasErrorFields(scope: Scope): boolean {
	return scope.directivesIn('add_header').some(({ args }) => args[2] === 'always' && args[1] !== '');
}

function writeExpires(args: readonly string[], out: ConfigfileWriter): void {
	const [value = ''] = args;
	if (value === 'off') return;
	if (args.length > 1) throw new Untranslatable('only a duration, `max`, `epoch` and `off` are translated');
	const isPast = value === 'epoch' || value.startsWith('-');
	const maxAgeSeconds = value === 'max' ? 315360000 : isPast ? 0 : secondsOf(value);
	out.writeBlock('header', () => {
		out.writeLine(`+Cache-Control ${isPast ? 'no-cache' : `max-age=${maxAgeSeconds}`}`);
		out.writeLine(SUCCESS_MATCHER);
	});
}

/** Writes `gzip` and its settings as `encode`. */
export function writeCompression(scope: Scope, out: ConfigfileWriter): void {
	const gzip = scope.lastDirective('gzip');
	if (!gzip) return;
	out.countTranslated(gzip);
	if (gzip.args[0] !== 'on') return;
	const typesDirective = scope.lastDirective('gzip_types');
	const levelDirective = scope.lastDirective('gzip_comp_level');
	const minLengthDirective = scope.lastDirective('gzip_min_length');
	const lines: string[] = [`gzip${levelDirective ? ` ${levelDirective.args[0]}` : ''}`];
	if (minLengthDirective) lines.push(`minimum_length ${minLengthDirective.args[0]}`);
	for (const directive of [typesDirective, levelDirective, minLengthDirective])
		if (directive) out.countTranslated(directive);
	if (typesDirective?.args.includes('*')) lines.push('match header Content-Type *');
	else {
		lines.push('match {');
		for (const type of new Set(['text/html', ...(typesDirective?.args ?? [])]))
			lines.push(`\theader Content-Type ${word(`${type}*`)}`);
		lines.push('}');
	}
	out.writeBlock('encode', () => {
		for (const line of lines) out.writeLine(line);
	});
}

/** Writes the maximum size of request bodies, even if it is not configured: by default, it is 1 MiB in nginx. */
export function writeBodyLimit(scope: Scope, out: ConfigfileWriter): void {
	const sizeDirective = scope.lastDirective('client_max_body_size');
	const writeLimit = (): void => {
		const maxSize = sizeOf(sizeDirective?.args[0] ?? '1m');
		if (sizeDirective?.args[0] !== '0') out.writeBlock('request_body', () => out.writeLine(`max_size ${maxSize}`));
	};
	if (sizeDirective) translateOrKeep(sizeDirective, out, writeLimit);
	else writeLimit();
}

/** Returns the media type of the texts that `return` sends; undefined for text/plain. */
export function textTypeOf(scope: Scope, out: ConfigfileWriter): string | undefined {
	const typeDirective: NginxDirective | undefined = scope.lastDirective('default_type');
	if (!typeDirective) return undefined;
	out.countTranslated(typeDirective);
	return typeDirective.args[0] === 'text/plain' ? undefined : typeDirective.args[0];
}
