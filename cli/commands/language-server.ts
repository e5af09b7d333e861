/** The command `svc language-server`: speaks the Language Server Protocol with an editor on standard input and output. */
import type { Command } from '../command/command.ts';

export const languageServer: Command = {
	name: 'language-server',
	summary: 'Serve an editor by the Language Server Protocol (also lsp)',
	details: [
		'Speaks the Language Server Protocol over standard input and output, for Configfiles and Caddyfiles. Editors start it; `svc help testing` says where their settings are.',
		'Reports what `svc validate --lint` reports while you type, except what depends on this machine, and does not run tests by itself. Nothing is executed, and only files in the folders of the workspace are read; links that lead out of them are not followed.',
	],
	options: [{ name: 'stdio', summary: 'Accepted for editors that pass it; standard input and output are always used' }],
	run: async () => {
		const { serveEditor } = await import('../language-server/server.ts');
		return serveEditor();
	},
};
