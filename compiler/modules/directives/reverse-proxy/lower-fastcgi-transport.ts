/** Lowers the options of FastCGI, for `transport fastcgi` and `php_fastcgi`. */
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import type { UpstreamDraft } from './lower-upstream.ts';
import { parseTransportDuration } from './transports/transport-duration.ts';
import type { FastcgiTransportSettings } from './transports/transport-settings.ts';

/** The settings of a FastCGI transport that is being lowered. Its lines set the fields. */
export type FastcgiDraft = { -readonly [K in keyof FastcgiTransportSettings]: FastcgiTransportSettings[K] };

/**
 * Returns the handlers of the options. Options about connections, such as keep-alive, are stored in the pool's draft, not in the
 * transport's.
 */
export function fastcgiOptions(
	transportDraft: FastcgiDraft,
	poolDraft: UpstreamDraft,
	cx: LowerContext,
): { [option: string]: SubdirectiveHandler } {
	return {
		root: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 1, 'root <folder>')) return;
			transportDraft.root = cx.filePath(cx.template(words[0]!), words[0]!.span);
		},
		split: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'split <extension>…'))
				return;
			for (const word of words) {
				if (/^[\x21-\x7e]+$/.test(word.text)) continue;
				const message = `\`${word.text}\` cannot split a path: use visible ASCII characters.`;
				cx.problem('error', 'fastcgi/split', word.span, message);
				return;
			}
			transportDraft.split = words.map(({ text }) => text);
		},
		env: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 2, 2, 'env <name> <value>')) return;
			const [nameWord, valueWord] = words as [(typeof words)[0], (typeof words)[0]];
			if (!/^[^\0=]+$/.test(nameWord.text)) {
				cx.problem('error', 'fastcgi/env', nameWord.span, `\`${nameWord.text}\` is not a variable name.`);
				return;
			}
			const entry = cx.origin({ name: nameWord.text, value: cx.template(valueWord) }, innerLine.span);
			transportDraft.env = [...(transportDraft.env ?? []).filter(variable => variable.name !== nameWord.text), entry];
		},
		resolve_root_symlink: (words, innerLine) => {
			if (cx.noBlock(innerLine) && cx.count(innerLine, words, 0, 0, 'resolve_root_symlink'))
				transportDraft.resolve_root_symlink = true;
		},
		capture_stderr: (words, innerLine) => {
			if (cx.noBlock(innerLine) && cx.count(innerLine, words, 0, 0, 'capture_stderr'))
				transportDraft.capture_stderr = true;
		},
		keepalive: (words, innerLine) => {
			const value = words.length === 1 && words[0]!.text === 'off' ? 0 : parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) poolDraft.keepalive = value;
		},
		dial_timeout: (words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) poolDraft.connect_timeout = value;
		},
		read_timeout: (words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) transportDraft.read_timeout = value;
		},
		write_timeout: (words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) transportDraft.write_timeout = value;
		},
	};
}
