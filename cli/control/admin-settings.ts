/** Reads the Admin API settings of a configuration, for commands that call a server without sending it a configuration. */
import type { AdminSettings } from '../../compiler/document/document.ts';
import { CommandFailure, type Invocation } from '../command/command.ts';
import { printError } from '../command/terminal.ts';
import { configurationSource, givenPath, readConfiguration } from '../configuration/configuration.ts';
import { TOKEN_VARIABLE } from './admin-client.ts';

/**
 * Returns the settings in the given file, or in the default one. A broken default file causes only a warning, because it must not
 * keep anyone from calling the server. @throws {@link CommandFailure} if the given file is broken
 */
export async function adminSettings(invocation: Invocation): Promise<AdminSettings | undefined> {
	const source = configurationSource(invocation);
	// The command line and the environment already give the address and the token, for which the file would be read.
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
