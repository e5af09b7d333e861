/** Writes `return`, `rewrite` and `if`. */
import { type ConfigfileWriter, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { translated, Untranslatable } from './nginx-values.ts';

/** Where the directives are. */
export interface RewritePlace {
	/** The name of the location's regular expression. */
	readonly captures: string | undefined;
	readonly place: 'server' | 'location';
}

/** Writes the directives in their order, up to the first `return`. */
export function writeRewrites(directives: readonly NginxDirective[], out: ConfigfileWriter, at: RewritePlace): void {
	let ended = false;
	for (const one of directives) {
		if (one.name !== 'return' && one.name !== 'rewrite' && one.name !== 'if') continue;
		if (ended) {
			out.keep(one, 'the `return` before it ends the request');
			continue;
		}
		if (one.name === 'return') {
			ended = true;
			orKeep(one, out, () => writeReturn(one, out, at.captures));
			// A `return` that cannot be translated becomes an error. Otherwise, what follows would answer instead.
			if (out.kept.some(({ directive }) => directive === one.text)) out.line('error 500');
		} else if (one.name === 'rewrite') orKeep(one, out, () => writeRewrite(one, out, at));
		else writeIf(one, out, at);
	}
}

function writeReturn({ args }: NginxDirective, out: ConfigfileWriter, captures: string | undefined): void {
	const [first = '', second] = args;
	const status = /^\d{3}$/.test(first) ? first : '302';
	const text = /^\d{3}$/.test(first) ? second : first;
	const value = text === undefined ? undefined : translated(text, captures);
	if (status === '444') out.line('abort');
	else if (/^30[12378]$/.test(status) && value !== undefined)
		out.line(`redir ${value.startsWith('/') ? '* ' : ''}${word(value)} ${status}`);
	else if (value !== undefined) out.line(`respond ${/^[/@*]/.test(value) ? '* ' : ''}${word(value)} ${status}`);
	else if (Number(status) >= 400) out.line(`error ${status}`);
	else out.line(`respond ${status}`);
}

function writeRewrite(one: NginxDirective, out: ConfigfileWriter, { place }: RewritePlace): void {
	const [pattern = '', target = '', flag] = one.args;
	if (/\(\?[=!<]|\\[1-9]/.test(pattern)) {
		throw new Untranslatable('the regular expression looks around or refers back, which ours cannot');
	}
	const name = out.unusedName('rewrite');
	const keepsQuery = !target.endsWith('?');
	const value = translated(keepsQuery ? target : target.slice(0, -1), name);
	const isUrl = /^(https?:\/\/|\$scheme)/.test(target);
	const matcher = (): void => out.line(`@${name} path_regexp ${name} ${word(pattern)}`);
	if (flag === 'permanent' || flag === 'redirect' || isUrl) {
		if (keepsQuery && !target.includes('?')) {
			matcher();
			out.line(`redir @${name} ${word(`${value}{?query}`)} ${flag === 'permanent' ? 301 : 302}`);
			return;
		}
		matcher();
		out.line(`redir @${name} ${word(value)} ${flag === 'permanent' ? 301 : 302}`);
		return;
	}
	if (place === 'location' && flag !== 'break') {
		throw new Untranslatable('a location cannot send a request to another one');
	}
	if (!target.startsWith('/')) throw new Untranslatable('the target is no path');
	matcher();
	const query = target.includes('?') ? (keepsQuery ? '&{query}' : '') : keepsQuery ? '' : '?';
	out.line(`rewrite @${name} ${word(`${value}${query}`)}`);
}

function writeIf(one: NginxDirective, out: ConfigfileWriter, at: RewritePlace): void {
	const text = one.args.join(' ').replace(/^\(\s*|\s*\)$/g, '');
	const inner = one.block ?? [];
	const [, variable, operator, wanted] = /^\$(\w+)\s*(!?=)\s*(.*)$/.exec(text) ?? [];
	const kind = { host: 'host', request_method: 'method' }[variable ?? ''];
	const only = inner.length === 1 && inner[0]!.name === 'return' ? inner[0]! : undefined;
	if (kind === undefined || wanted === undefined || /[*$"' ]/.test(wanted) || !only) {
		out.keep(one, 'only a comparison of $host or $request_method with a `return` inside is translated');
		return;
	}
	const before = out.kept.length;
	out.block(`when ${operator === '=' ? '' : 'not '}${kind} ${wanted}`, () => writeRewrites([only], out, at));
	if (out.kept.length === before) out.count(one);
	else out.keep(one, 'see its `return`');
}

/** Runs a translation; a directive whose value has no counterpart is kept. */
export function orKeep(one: NginxDirective, out: ConfigfileWriter, translate: () => void): void {
	try {
		translate();
		out.count(one);
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		out.keep(one, error.message);
	}
}
