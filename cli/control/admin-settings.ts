/** Reads the Admin API settings of a configuration, for commands that call a server without sending it a configuration. */
import { DEFAULT_ADMIN_LISTEN } from '../../admin/listen-address.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { configurationSource, givenPath, readConfiguration } from '../configuration/configuration.ts';
import { TOKEN_VARIABLE } from './admin-client.ts';

/**
 * Returns the Admin API settings in the file that the command line names, or in the default file. If the file is refused, its
 * option `admin` is used nevertheless, with a warning, because the server that runs was started with an earlier text of it. A
 * default file that cannot be read, or whose option cannot, causes only a warning, so that the server can still be called.
 * @throws {@link CommandFailure} if that happens with the file that the command line names
 */
export async function adminSettings(invocation: Invocation): Promise<AdminSettings | undefined> {
	const source = configurationSource(invocation);
	// If the command line gives the address and the environment gives the token, nothing in the file is needed.
	if (!source || (invocation.value('address') !== undefined && process.env[TOKEN_VARIABLE])) return undefined;
	const { readAdminOption } = await import('../configuration/compilation.ts');
	try {
		const { admin, refusal } = readAdminOption(await readConfiguration(source));
		if (refusal && !admin) throw refusal;
		if (refusal) printError(`warning: ${refusal.message} Its option \`admin\` is used nevertheless.\n`);
		return admin;
	} catch (error) {
		if (!(error instanceof CommandFailure) || givenPath(invocation) !== undefined) throw error;
		const called =
			invocation.value('address') === undefined
				? `, so the server at ${DEFAULT_ADMIN_LISTEN} is called; --address names another`
				: '';
		printError(`warning: ${error.message} Its option \`admin\` cannot be read${called}.\n`);
		return undefined;
	}
}
