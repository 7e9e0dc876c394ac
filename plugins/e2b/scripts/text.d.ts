declare module '*.sh' {
  const text: string
  export default text
}

declare module '*.pl' {
  const text: string
  export default text
}
