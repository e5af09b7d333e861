/**
 * The editor files that are generated from the names of directives, matchers and options. The test of this folder writes them.
 */
import { emacsWords } from './emacs-words.ts';
import { textMateGrammar } from './textmate-grammar.ts';
import { vimSyntax } from './vim-syntax.ts';

/** Returns the derived files by their paths in this folder. */
export function derivedFiles(): ReadonlyMap<string, string> {
	const json = (value: unknown): string => `${JSON.stringify(value, undefined, '\t')}\n`;
	return new Map([
		['vscode/syntaxes/configfile.tmLanguage.json', json(textMateGrammar('configfile'))],
		['vscode/syntaxes/caddyfile.tmLanguage.json', json(textMateGrammar('compatfile'))],
		['vim/syntax/configfile.vim', vimSyntax('configfile')],
		['vim/syntax/caddyfile.vim', vimSyntax('compatfile')],
		['emacs/svc-words.el', emacsWords()],
	]);
}
