/** The words that the Emacs mode colors, as Emacs Lisp. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { editorWords } from './editor-words.ts';

/** Returns the contents of the file from which the Emacs mode loads the words. */
export function emacsWords(): string {
	const definitions = (['configfile', 'compatfile'] as const satisfies readonly Dialect[]).map(dialect => {
		const { directives, matchers, options, keywords, operators } = editorWords(dialect);
		const lispList = (name: string, words: readonly string[]): string =>
			`    (${name} ${words.map(word => JSON.stringify(word)).join(' ')})`;
		const rows = [
			...[lispList('directives', directives), lispList('matchers', matchers), lispList('options', options)],
			...[lispList('keywords', keywords), lispList('operators', operators)],
		];
		return `(defconst svc-words-${dialect}\n  '(\n${rows.join('\n')}))\n`;
	});
	return `;;; svc-words.el --- Words of configurations of svc  -*- lexical-binding: t -*-

;;; Commentary:
;; Derived from the modules of svc.

;;; Code:

${definitions.join('\n')}
(provide 'svc-words)
;;; svc-words.el ends here
`;
}
