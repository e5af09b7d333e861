/** Reads the Admin API settings of a configuration, for commands that call a server without sending it a configuration. */
import type { AdminSettings } from '../../compiler/document/document.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { configurationSource, givenPath, readConfiguration } from '../configuration/configuration.ts';
import { TOKEN_VARIABLE } from './admin-client.ts';

/**
 * Returns the Admin API settings in the file that the command line names, or in the default file. A broken default file causes
 * only a warning, so that the server can still be called. @throws {@link CommandFailure} if the file that the command line names
 * is broken
 */
export async function adminSettings(invocation: Invocation): Promise<AdminSettings | undefined> {
	const source = configurationSource(invocation);
	// If the command line gives the address and the environment gives the token, nothing in the file is needed.
	if (!source || (invocation.value('address') !== undefined && process.env[TOKEN_VARIABLE])) return undefined;
	const { compileConfiguration } = await import('../configuration/compilation.ts');
	try {
		return compileConfiguration(await readConfiguration(source)).document.settings?.admin;
	} catch (error) {
		if (!(error instanceof CommandFailure) || givenPath(invocation) !== undefined) throw error;
		printError(`warning: ${error.message} Its Admin API address and token are ignored.\n`);
		return undefined;
	}
}
