/** An environment, and the backend that it is on. */
export interface EnvironmentPlace {
  environmentId: string
  backend: string
}

export interface StrayEnvironment extends EnvironmentPlace {
  foundAt: string
}
