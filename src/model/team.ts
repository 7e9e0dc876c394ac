export interface Team {
  id: string
  name: string
  createdAt: string
}
